// The form of one dependency: which task waits for which, of what type, and under which condition.

import { html, nothing, render } from "../../vendor/lit.js";
import { textOf } from "./fields.js";
import { buttonsOf, fieldOf, generalProblems } from "./form_parts.js";
import { OperationForm } from "./operation_form.js";

const SAID = ["type", "condition", "description"];
const TYPE_HINT = "success only: it has to be completed; completion only and unconditional: it has to have ended; conditional: completed, and the condition holds.";
const CONDITION_HINT = "over its result, as accuracy > 0.95; left empty: none";

export class DependencyForm extends OperationForm {
  // `ends`: {from, to} by ids of tasks, or one of them; `row`: the dependency as it is; `given`: what the draft says of it.
  async open({ ends, row = null, given = {} }) {
    if (!(await this.begin(() => this.open({ ends, row, given })))) return;
    Object.assign(this, { ends, row, given });
    this.show("form :is(input, select)");
  }

  // The fields of this form: those that say which task, where that is not known yet, and what is said of the dependency.
  get #properties() {
    const { properties } = this.schemas[this.row ? "update_dependency" : "add_dependency"];
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
    const values = this.read(event, this.#properties, this.#before);
    for (const end of ["from", "to"]) if (!this.ends[end] && !values[end]) this.problems.push({ field: end, message: "say which task" });
    if (this.problems.length) return this.say();
    if (this.row && !Object.keys(values).length) return this.close();
    await this.put({ op: this.row ? "update_dependency" : "add_dependency", parameters: { ...this.ends, ...values } });
  }
}
