// The request box: a plan typed, pasted, uploaded or taken from the examples, with what the server refuses marked by line.

import { Refused } from "./api.js";
import { element, setText } from "./dom.js";

const MAX_NUMBERED_LINES = 5000;
const MAX_FILE_BYTES = 5_000_000;

// What a text asks for: a plan (JSON, or YAML with a line `tasks:`), else a request in words.
export function payloadOf(text) {
  return /^\s*\{/.test(text) || /^tasks\s*:/m.test(text) ? { plan: text } : { request: text };
}

export class PlanBox {
  // `submit(text, title)` resolves when the request was taken.
  constructor(form, examples, submit) {
    Object.assign(this, { form, examples, submit });
    this.text = form.querySelector("textarea");
    this.gutter = form.querySelector(".gutter");
    this.problems = form.querySelector(".problems");
    this.button = form.querySelector("button[type=submit]");
    this.marked = new Map();
    this.text.addEventListener("input", () => this.#typed());
    this.text.addEventListener("scroll", () => this.#scrolled());
    this.text.addEventListener("dragover", (event) => event.preventDefault());
    this.text.addEventListener("drop", (event) => this.#dropped(event));
    form.elements.example?.addEventListener("change", (event) => this.#example(event.target));
    form.elements.file.addEventListener("change", (event) => this.#upload(event.target.files[0]));
    form.addEventListener("submit", (event) => this.#submit(event));
    this.#number();
  }

  setText(text) {
    this.text.value = text;
    this.text.scrollTop = 0;
    this.#typed();
  }

  #typed() {
    if (this.problems.childElementCount) this.#show([]);
    this.#number();
  }

  #number() {
    const lines = Math.min(this.text.value.split("\n").length, MAX_NUMBERED_LINES);
    while (this.gutter.childElementCount > lines) this.gutter.lastElementChild.remove();
    while (this.gutter.childElementCount < lines) {
      this.gutter.append(element("li", {}, String(this.gutter.childElementCount + 1)));
    }
    this.#scrolled();
  }

  #scrolled() {
    this.gutter.style.transform = `translateY(${-this.text.scrollTop}px)`;
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

  #dropped(event) {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    this.#upload(file);
  }

  async #submit(event) {
    event.preventDefault();
    if (!this.text.value.trim()) return this.#show([{ message: "There is nothing to do yet: write a plan or a request, or choose an example." }]);
    this.button.disabled = true;
    this.#show([]);
    try {
      await this.submit(this.text.value, this.form.elements.title?.value.trim() ?? "");
    } catch (error) {
      if (!(error instanceof Refused)) this.#show([{ message: `The server cannot be reached (${error.message}).` }]);
      else this.#show(error.problems.length ? error.problems : [{ message: error.message }]);
    } finally {
      this.button.disabled = false;
    }
  }

  #show(problems) {
    for (const line of this.gutter.querySelectorAll("[data-bad]")) line.removeAttribute("data-bad");
    for (const { line } of problems) this.gutter.children[line - 1]?.setAttribute("data-bad", "");
    this.problems.replaceChildren(...problems.map((one) => this.#problem(one)));
    this.text.toggleAttribute("aria-invalid", problems.length > 0);
    if (problems[0]?.line) this.#goTo(problems[0].line, false);
  }

  #problem({ line, column, key, message }) {
    const named = column ? `line ${line}, column ${column}` : `line ${line}`;
    const place = line ? element("button", { type: "button", class: "link" }, named) : null;
    place?.addEventListener("click", () => this.#goTo(line, true));
    return element("li", {}, place, key ? element("code", {}, key) : null, element("span", {}, message));
  }

  #goTo(line, select) {
    const height = parseFloat(getComputedStyle(this.text).lineHeight);
    this.text.scrollTop = Math.max(0, (line - 4) * height);
    if (!select) return;
    const lines = this.text.value.split("\n");
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    this.text.focus();
    this.text.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
  }

  clear() {
    this.setText("");
    if (this.form.elements.example) this.form.elements.example.value = "";
    this.form.elements.file.value = "";
    setText(this.problems, "");
  }
}
