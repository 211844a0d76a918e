// What the forms of operations do alike: each opens beside what opened it, tries its operation, and puts it into the draft.

import * as api from "../../api.js";
import { html, nothing, render } from "../../vendor/lit.js";
import { problemsOf, readFields } from "./form_parts.js";

export class OperationForm {
  // Who extends it has `draw()`.
  constructor(host, { editing, store }) {
    Object.assign(this, { host, editing, store, schemas: null, problems: [], opener: null });
    host.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  // Before a form says what it is about: the schemas of operations are there, and nothing of an earlier one is. Where they
  // cannot be had it says so in its place, with a button for `again()`, and answers false.
  async begin(again) {
    this.opener = document.activeElement;
    this.problems = [];
    try {
      this.schemas ??= await api.editingForms();
    } catch (error) {
      this.#apologize(error, again);
      return false;
    }
    render(nothing, this.host); // what was typed in another one is no part of this
    return true;
  }

  #apologize(error, again) {
    this.host.hidden = false;
    render(
      html`<p class="alarm" role="alert">The form cannot be shown now: ${error.message}</p>
        <div class="buttons">
          <button type="button" class="quiet" @click=${() => this.close()}>Not now</button>
          <button type="button" class="primary" @click=${again}>Try again</button>
        </div>`,
      this.host,
    );
    this.host.querySelector(".primary").focus();
  }

  // Shows it, with the focus on the first field of that selector.
  show(first) {
    this.host.hidden = false;
    this.draw();
    this.host.querySelector(first)?.focus();
    this.host.scrollIntoView({ block: "nearest" });
  }

  close() {
    if (this.host.hidden) return;
    this.host.hidden = true;
    render(nothing, this.host);
    if (this.opener?.isConnected) this.opener.focus();
  }

  // What was typed otherwise than `before`; what cannot be read of it is in `problems`.
  read(event, properties, before) {
    event.preventDefault();
    const { values, problems } = readFields(properties, event.target.elements, before);
    this.problems = problems;
    return values;
  }

  // Asks the server what would come of it; what it refuses stands beside its field, anything else is in the draft.
  // `old` is the operation of the draft in whose place it comes.
  async put(operation, old = null) {
    try {
      await this.editing.consider(operation, old);
    } catch (error) {
      if (!(error instanceof api.Refused)) throw error;
      this.problems = problemsOf(error);
      return this.say();
    }
    this.editing.replace(old, operation);
    this.close();
  }

  // Shows what is wrong, where it is.
  say() {
    this.draw();
    this.host.querySelector("[aria-invalid]")?.focus();
  }
}
