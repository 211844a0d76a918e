// The form of one task, new or changed. Its fields come from the editor's own schema; a refusal stands beside its field.

import * as api from "../../api.js";
import { html, nothing, render } from "../../vendor/lit.js";
import { textOf, textOfTask } from "./fields.js";
import { buttonsOf, fieldOf, generalProblems, problemsOf, readFields } from "./form_parts.js";

const FIRST = ["task_id", "name", "device", "command", "description", "after", "timeout"]; // others are behind "More"

export class TaskForm {
  #forms = null;

  constructor(host, { editing, store }) {
    Object.assign(this, { host, editing, store, task: null, op: "", given: {}, told: "", problems: [], opener: null });
    host.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  // For a new task (null), a row that is there, or an operation of the draft.
  async open({ task = null, operation = null }) {
    this.#forms ??= await api.editingForms();
    const row = operation?.op === "update_task" ? this.#rowOf(operation.parameters.task_id) : task;
    this.opener = document.activeElement;
    Object.assign(this, { task: row, op: row ? "update_task" : "add_task", given: operation?.parameters ?? {}, told: "", problems: [] });
    this.before = this.#texts();
    this.host.hidden = false;
    this.draw();
    this.host.querySelector("input:not([disabled]), textarea")?.focus();
    this.host.scrollIntoView({ block: "nearest" });
  }

  close() {
    if (this.host.hidden) return;
    this.host.hidden = true;
    render(nothing, this.host);
    this.task = null;
    if (this.opener?.isConnected) this.opener.focus();
  }

  get #properties() {
    const { task_id: name, ...others } = this.#forms[this.op].properties;
    return this.task ? others : { task_id: name, ...others };
  }

  #rowOf(taskId) {
    return this.store.rowsOf("task").find((row) => row.task_id === taskId) ?? null;
  }

  // What each field says of the task as it is.
  #texts() {
    const texts = {};
    for (const [key, schema] of Object.entries(this.#properties)) texts[key] = this.task ? textOfTask(this.task, key, schema) : "";
    return texts;
  }

  // Somebody else changed this task: fields that nobody touched here show it, others stay and are marked.
  update(changes) {
    if (this.host.hidden || !this.task || !changes.ids.task?.has(this.task.id)) return;
    const row = this.store.fold.get("task", this.task.id);
    if (!row) {
      this.told = "Somebody has removed this task meanwhile.";
      this.draw();
      return;
    }
    if (row.version === this.task.version) return;
    const before = this.before;
    this.task = row;
    this.before = this.#texts();
    const moved = Object.keys(before).filter((key) => before[key] !== this.before[key]);
    for (const key of moved) {
      const field = this.host.querySelector("form").elements[key];
      if (field.value === before[key]) field.value = this.before[key];
    }
    this.told = moved.length ? `Changed meanwhile by somebody else: ${moved.join(", ")}.` : this.told;
    this.moved = new Set(moved);
    this.draw();
  }

  draw() {
    const keys = Object.keys(this.#properties);
    const shown = (key) => FIRST.includes(key) || this.given[key] !== undefined;
    const more = keys.filter((key) => !shown(key));
    render(
      html`<h2>${this.task ? `Change ${this.task.task_id}` : "Add a task"}</h2>
        ${this.told ? html`<p class="meanwhile" role="status">${this.told}</p>` : nothing}
        ${generalProblems(this.problems, keys)}
        <form novalidate @submit=${(event) => this.#submit(event)}>
          ${keys.filter(shown).sort((a, b) => FIRST.indexOf(a) - FIRST.indexOf(b)).map((key) => this.#field(key))}
          <details ?open=${more.some((key) => this.problems.some((one) => one.field === key))}><summary>More</summary>${more.map((key) => this.#field(key))}</details>
          ${buttonsOf(() => this.close())}
        </form>`,
      this.host,
    );
  }

  #field(key) {
    const schema = this.#properties[key];
    const text = this.given[key] === undefined ? this.before[key] : textOf(this.given[key], schema);
    const hint = schema.description ?? this.#forms.add_task.properties[key]?.description;
    return fieldOf({ key, schema, text, hint, problems: this.problems.filter((one) => one.field === key), isMoved: this.moved?.has(key) });
  }

  async #submit(event) {
    event.preventDefault();
    const { values, problems } = readFields(this.#properties, event.target.elements, this.before);
    this.problems = problems;
    if (problems.length) return this.#say();
    if (this.task && !Object.keys(values).length) return this.close();
    const operation = { op: this.op, parameters: this.task ? { task_id: this.task.task_id, ...values } : values };
    try {
      await this.editing.consider(operation);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.problems = problemsOf(error);
      return this.#say();
    }
    this.editing.add(operation);
    this.close();
  }

  #say() {
    this.draw();
    this.host.querySelector("[aria-invalid]")?.focus();
  }
}
