// The form of a device: to make one, or to change what it offers. What was not changed is not sent.

import * as api from "./api.js";
import { element } from "./dom.js";

const KINDS = ["local", "remote", "mcp", "acp", "browser"];
const NEW = {
  name: "", kind: "local", platform: "", os: "", type: "", capabilities: [], labels: [], max_concurrent: 4,
  used_by: ["everybody"], owner: "", is_offered: true, connection: {}, metadata: {}, limits: {}, recipes: {}, apps: {},
}; // prettier-ignore
const FIELDS = [
  ["name", "Name", "text"],
  ["kind", "Kind", "choice"],
  ["platform", "Platform (empty: by its kind)", "text"],
  ["os", "Operating system", "text"],
  ["type", "Type", "text"],
  ["capabilities", "Capabilities, by commas", "list"],
  ["labels", "Labels, by commas", "list"],
  ["max_concurrent", "Slots", "number"],
  ["used_by", "Used by: everybody, user:NAME, group:NAME", "list"],
  ["owner", "Owner", "text"],
  ["is_offered", "Offered to tasks that wish for no device", "check"],
  ["connection", "Connection (JSON)", "json"],
  ["metadata", "Metadata (JSON)", "json"],
  ["limits", "Limits (JSON)", "json"],
  ["recipes", "Recipes (JSON)", "json"],
  ["apps", "Apps (JSON)", "json"],
];
const FIXED = new Set(["name", "kind"]);

// A form for `device`, or for a new one where that is null; `onSaved(device)` hears what became of it.
export function deviceForm(device, onSaved) {
  const before = device ?? NEW;
  const fields = FIELDS.filter(([name]) => !device || !FIXED.has(name));
  const inputs = Object.fromEntries(fields.map(([name, , kind]) => [name, input(name, kind, before[name])]));
  const problems = element("ul", { class: "problems" });
  const labels = fields.map(([name, label, kind]) => element("label", { "data-kind": kind }, element("span", {}, label), inputs[name]));
  const save = element("button", { class: "primary" }, device ? "Save" : "Make the device");
  const form = element("form", { class: "device-form", "aria-label": device ? `Change ${device.name}` : "New device" }, ...labels, problems, save);
  inputs.kind?.addEventListener("change", () => (inputs.is_offered.checked = inputs.kind.value === "local"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    save.disabled = true;
    problems.replaceChildren();
    try {
      const said = changes(fields, inputs, before, device ? [] : ["name", "kind", "is_offered"]);
      onSaved(await (device ? api.changeDevice(device.id, said) : api.makeDevice(said)));
    } catch (error) {
      problems.replaceChildren(...told(error));
    } finally {
      save.disabled = false;
    }
  });
  return form;
}

// What differs from `before`, and what is `always` said. Throws where a text is no JSON.
function changes(fields, inputs, before, always) {
  const said = {};
  for (const [name, label, kind] of fields) {
    const value = valueOf(inputs[name], kind, label);
    if (always.includes(name) || JSON.stringify(value) !== JSON.stringify(before[name])) said[name] = value;
  }
  return said;
}

function input(name, kind, value) {
  if (kind === "choice") return element("select", { name }, ...KINDS.map((each) => element("option", { selected: each === value }, each)));
  if (kind === "check") return element("input", { type: "checkbox", name, checked: value });
  if (kind === "number") return element("input", { type: "number", name, min: 1, value });
  if (kind === "json") return element("textarea", { name, rows: 3, spellcheck: "false" }, JSON.stringify(value, null, 1));
  return element("input", { type: "text", name, value: kind === "list" ? value.join(", ") : value });
}

function valueOf(field, kind, label) {
  if (kind === "check") return field.checked;
  if (kind === "number") return Number(field.value);
  if (kind === "list") return field.value.split(",").map((each) => each.trim()).filter(Boolean);
  if (kind !== "json") return field.value;
  try {
    return JSON.parse(field.value || "{}");
  } catch {
    throw new Error(`${label} is no JSON`);
  }
}

function told(error) {
  const places = error.problems?.length ? error.problems : [{ key: "", message: error.message }];
  return places.map(({ key, message }) => element("li", {}, element("code", {}, key), message));
}
