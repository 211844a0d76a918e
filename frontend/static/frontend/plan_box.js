// The request box: a plan typed, pasted, uploaded or taken from the examples, with what the server refuses marked by line.
// Its editor is a module of its own (plan_editor.js), which comes when the box is seen; until then, and where it cannot
// load, there is a plain field.

import { checkPlan, Refused } from "./api.js";
import { element, setText } from "./dom.js";
import { plural } from "./format.js";

const MAX_FILE_BYTES = 5_000_000;
const CHECK_MS = 600; // after the last letter
const CHECKED_CHARACTERS = 200_000; // a longer plan is checked when it is submitted

// What a text asks for: a plan (JSON, or YAML with a line `tasks:`), else a request in words.
export function payloadOf(text) {
  return /^\s*\{/.test(text) || /^tasks\s*:/m.test(text) ? { plan: text } : { request: text };
}

export class PlanBox {
  // `submit(text, title)` resolves when the request was taken.
  constructor(form, examples, submit) {
    Object.assign(this, { form, examples, submit, said: "[]" });
    this.problems = form.querySelector(".problems");
    this.checked = form.querySelector(".checked");
    this.button = form.querySelector("button[type=submit]");
    const area = form.querySelector("textarea");
    this.written = new PlainField(area, () => this.#typed());
    const host = form.querySelector(".editor");
    host.addEventListener("dragover", (event) => event.preventDefault(), true);
    host.addEventListener("drop", (event) => this.#dropped(event), true);
    form.elements.example?.addEventListener("change", (event) => this.#example(event.target));
    form.elements.file.addEventListener("change", (event) => this.#upload(event.target.files[0]));
    form.addEventListener("submit", (event) => this.#submit(event));
    form.addEventListener("keydown", (event) => this.#onKey(event), true);
    whenSeen(form, () => this.#bringEditor(area));
  }

  async #bringEditor(area) {
    const brought = await import("./plan_editor.js").catch(() => null);
    if (!brought) return;
    this.written.leave();
    this.written = new brought.PlanEditor(area, () => this.#typed());
    if (area.value) this.#typed();
  }

  setText(text) {
    this.written.text = text;
    this.#typed();
  }

  #typed() {
    clearTimeout(this.timer);
    const { text } = this.written;
    if (payloadOf(text).plan !== undefined && text.length <= CHECKED_CHARACTERS) this.timer = setTimeout(() => this.#check(text), CHECK_MS);
    else this.#show([]);
  }

  // Asks what the server would say of a plan; what was typed meanwhile is asked about anew.
  async #check(text) {
    const found = await checkPlan(text).catch((error) => error);
    if (text !== this.written.text || this.button.disabled) return;
    if (found instanceof Refused) this.#show(found.problems);
    else if (found instanceof Error) this.#show([]);
    else {
      const edges = found.dependencies === 1 ? "1 dependency" : `${found.dependencies} dependencies`;
      this.#show([], `Nothing is wrong with it: ${plural(found.tasks, "task")}, ${edges}.`);
    }
  }

  #example(select) {
    const example = this.examples.find((one) => one.name === select.value);
    if (example) this.setText(example.text);
  }

  async #upload(file) {
    if (!file) return;
    if (file.size > MAX_FILE_BYTES) this.#show([{ message: `${file.name} is larger than ${MAX_FILE_BYTES / 1e6} MB` }]);
    else this.setText(await file.text());
  }

  // Before the editor hears of it, which would write the file's text where the pointer is.
  #dropped(event) {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    event.stopPropagation();
    this.#upload(file);
  }

  // Ctrl or Cmd with Enter runs it, from everywhere in the box.
  #onKey(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    this.form.requestSubmit(this.button);
  }

  async #submit(event) {
    event.preventDefault();
    clearTimeout(this.timer);
    const { text } = this.written;
    if (!text.trim()) return this.#show([{ message: "There is nothing to do yet: write a plan or a request, or choose an example." }]);
    this.button.disabled = true;
    this.#show([]);
    try {
      await this.submit(text, this.form.elements.title?.value.trim() ?? "");
    } catch (error) {
      if (!(error instanceof Refused)) this.#show([{ message: `The server cannot be reached (${error.message}).` }]);
      else this.#show(error.problems.length ? error.problems : [{ message: error.message }]);
    } finally {
      this.button.disabled = false;
    }
  }

  #show(problems, checked = "") {
    this.written.mark(problems);
    setText(this.checked, checked);
    const said = JSON.stringify(problems);
    if (said === this.said) return; // nothing to announce again
    this.said = said;
    this.problems.replaceChildren(...problems.map((one) => this.#problem(one)));
  }

  #problem({ line, column, key, message }) {
    const named = column ? `line ${line}, column ${column}` : `line ${line}`;
    const place = line ? element("button", { type: "button", class: "link" }, named) : null;
    place?.addEventListener("click", () => this.written.goTo(line));
    return element("li", {}, place, key ? element("code", {}, key) : null, element("span", {}, message));
  }

  clear() {
    this.setText("");
    if (this.form.elements.example) this.form.elements.example.value = "";
    this.form.elements.file.value = "";
  }
}

// The field as the page brings it: all that PlanEditor does, without marks in the text.
class PlainField {
  constructor(area, onInput) {
    this.area = area;
    this.heard = new AbortController();
    area.addEventListener("input", onInput, { signal: this.heard.signal });
  }

  leave() {
    this.heard.abort();
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.area.scrollTop = 0;
  }

  mark(problems) {
    this.area.toggleAttribute("aria-invalid", problems.length > 0);
  }

  goTo(line) {
    const lines = this.area.value.split("\n");
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    this.area.focus();
    this.area.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    this.area.scrollTop = Math.max(0, (line - 4) * parseFloat(getComputedStyle(this.area).lineHeight));
  }
}

function whenSeen(node, then) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    then();
  });
  observer.observe(node);
}
