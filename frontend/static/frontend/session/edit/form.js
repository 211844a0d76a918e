// The form of one task, new or changed. Its fields come from the editor's own schema; a refusal stands beside its field.

import { html, nothing, render } from "../../vendor/lit.js";
import { textOf, textOfTask } from "./fields.js";
import { buttonsOf, fieldOf, generalProblems } from "./form_parts.js";
import { OperationForm } from "./operation_form.js";

const FIRST = ["task_id", "name", "device", "command", "description", "after", "timeout"]; // others are behind "More"

export class TaskForm extends OperationForm {
  constructor(host, parts) {
    super(host, parts);
    Object.assign(this, { task: null, operation: null, op: "", given: {}, told: "" });
  }

  // For a new task (null), a row that is there, or an operation of the draft.
  async open({ task = null, operation = null }) {
    if (!(await this.begin(() => this.open({ task, operation })))) return;
    const row = operation?.op === "update_task" ? this.#rowOf(operation.parameters.task_id) : task;
    Object.assign(this, { task: row, operation, op: row ? "update_task" : "add_task", given: operation?.parameters ?? {}, told: "", moved: null });
    this.before = this.#texts();
    this.show("input:not([disabled]), textarea");
  }

  close() {
    super.close();
    this.task = null;
  }

  get #properties() {
    const { task_id: name, ...others } = this.schemas[this.op].properties;
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
    const hint = schema.description ?? this.schemas.add_task.properties[key]?.description;
    return fieldOf({ key, schema, text, hint, problems: this.problems.filter((one) => one.field === key), isMoved: this.moved?.has(key) });
  }

  async #submit(event) {
    const values = this.read(event, this.#properties, this.before);
    if (this.problems.length) return this.say();
    if (this.task && !Object.keys(values).length) return this.close();
    if (this.task) await this.put({ op: this.op, parameters: { task_id: this.task.task_id, ...values } });
    else await this.put({ op: this.op, parameters: values }, this.operation); // the form says all of a new task
  }
}
