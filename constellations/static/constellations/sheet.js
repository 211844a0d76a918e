// Rows that an operator adds to a sheet: a copy of the template, numbered as the server counts them.

function add(button) {
  const kind = button.dataset.add;
  const total = document.querySelector(`[name="${kind}-TOTAL_FORMS"]`);
  const template = document.querySelector(`template[data-row-of="${kind}"]`);
  const holder = document.createElement("template");
  holder.innerHTML = template.innerHTML.replaceAll("__prefix__", total.value);
  const row = holder.content.firstElementChild;
  document.querySelector(`[data-rows="${kind}"]`).append(row);
  total.value = Number(total.value) + 1;
  row.querySelector(".o-field input, .o-field select, .o-field textarea").focus();
  if (kind === "tasks") row.addEventListener("change", () => suggest(row));
}

// A task that is being added can be named by a dependency that is being added.
function suggest(row) {
  const name = row.querySelector('[name$="-task_id"]').value.trim();
  const list = document.getElementById("task-ids");
  if (name && ![...list.options].some((option) => option.value === name)) list.append(new Option(name, name));
}

// Texts grow with what is written in them.
function fit(area) {
  area.rows = Math.min(12, Math.max(Number(area.dataset.rows ??= area.rows), area.value.split("\n").length));
}

for (const button of document.querySelectorAll("[data-add]")) button.addEventListener("click", () => add(button));
for (const area of document.querySelectorAll(".o-field textarea")) fit(area);
document.addEventListener("input", (event) => {
  if (event.target.matches(".o-field textarea")) fit(event.target);
});
document.querySelector(".o-wrong, .o-sheet .errors")?.scrollIntoView({ block: "center" });
