// The form of one dependency: which task waits for which, of what type, and under which condition.

import * as api from "../../api.js";
import { html, nothing, render } from "../../vendor/lit.js";
import { textOf } from "./fields.js";
import { buttonsOf, fieldOf, generalProblems, problemsOf, readFields } from "./form_parts.js";

const SAID = ["type", "condition", "description"];
const TYPE_HINT = "success only: it has to be completed; completion only and unconditional: it has to have ended; conditional: completed, and the condition holds.";
const CONDITION_HINT = "over its result, as accuracy > 0.95; left empty: none";

export class DependencyForm {
  #forms = null;

  constructor(host, { editing, store }) {
    Object.assign(this, { host, editing, store, problems: [], opener: null });
    host.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  // `ends`: {from, to} by ids of tasks, or one of them; `row`: the dependency as it is; `given`: what the draft says of it.
  async open({ ends, row = null, given = {} }) {
    this.#forms ??= await api.editingForms();
    this.opener = document.activeElement;
    Object.assign(this, { ends, row, given, problems: [] });
    render(nothing, this.host); // what was typed in another one is no part of this
    this.host.hidden = false;
    this.draw();
    this.host.querySelector("form :is(input, select)").focus();
    this.host.scrollIntoView({ block: "nearest" });
  }

  close() {
    if (this.host.hidden) return;
    this.host.hidden = true;
    render(nothing, this.host);
    if (this.opener?.isConnected) this.opener.focus();
  }

  // The fields of this form: those that say which task, where that is not known yet, and what is said of the dependency.
  get #properties() {
    const { properties } = this.#forms[this.row ? "update_dependency" : "add_dependency"];
    const open = ["from", "to"].filter((end) => !this.ends[end]);
    return Object.fromEntries([...open, ...SAID].map((key) => [key, properties[key]]));
  }

  // What is there, without what the draft says.
  get #before() {
    return Object.fromEntries(Object.entries(this.#properties).map(([key, schema]) => [key, textOf(this.row?.[key], schema)]));
  }

  draw() {
    const { ends, problems } = this;
    const properties = this.#properties;
    const keys = Object.keys(properties);
    const before = this.#before;
    const hints = { type: TYPE_HINT, condition: CONDITION_HINT };
    const names = { from: "task that comes first", to: "task that shall wait" };
    const field = (key) => {
      const text = this.given[key] === undefined ? before[key] : textOf(this.given[key], properties[key]);
      return fieldOf({ key, schema: properties[key], text, problems: problems.filter((one) => one.field === key), hint: hints[key], name: names[key], list: key in names ? "ends-of-it" : nothing });
    };
    render(
      html`<h2>${ends.from && ends.to ? `${ends.to} waits for ${ends.from}` : ends.from ? `Let a task wait for ${ends.from}` : `Let ${ends.to} wait`}</h2>
        ${generalProblems(problems, keys)}
        <form novalidate @submit=${(event) => this.#submit(event)}>
          ${keys.map(field)}
          <datalist id="ends-of-it">${this.store.rowsOf("task").map((one) => html`<option value=${one.task_id}>${one.name}</option>`)}</datalist>
          ${buttonsOf(() => this.close())}
        </form>`,
      this.host,
    );
  }

  async #submit(event) {
    event.preventDefault();
    const { values, problems } = readFields(this.#properties, event.target.elements, this.#before);
    this.problems = problems;
    for (const end of ["from", "to"]) if (!this.ends[end] && !values[end]) this.problems.push({ field: end, message: "say which task" });
    if (this.problems.length) return this.#say();
    if (this.row && !Object.keys(values).length) return this.close();
    const operation = { op: this.row ? "update_dependency" : "add_dependency", parameters: { ...this.ends, ...values } };
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
