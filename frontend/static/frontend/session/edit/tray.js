// The tray: the draft as a list, what would follow from it, what others changed meanwhile, and the way to make or drop it.

import { html, nothing, render, repeat } from "../../vendor/lit.js";
import { plural } from "../../format.js";
import { operationText } from "./draft.js";

const PATH_SHOWN = 8; // tasks of a critical path
const TASKS_SHOWN = 12;

export class Tray {
  constructor(host, { editing, openForm }) {
    Object.assign(this, { host, editing, openForm, reason: "" });
    editing.listen(() => this.draw());
    host.addEventListener("keydown", (event) => this.#key(event));
    this.draw();
  }

  draw() {
    const { editing, host } = this;
    const { draft } = editing;
    host.hidden = !editing.isAllowed || (draft.isEmpty && !editing.outcome && !draft.canUndo && !draft.canRedo);
    document.body.dataset.draft = draft.operations.length;
    if (host.hidden) return;
    render(
      html`<header>
          <h2>${draft.isEmpty ? "Draft" : `Draft of ${plural(draft.operations.length, "change")}, on version ${draft.basedOn}`}</h2>
          <button type="button" ?disabled=${!draft.canUndo} @click=${() => editing.undo()}>Undo</button>
          <button type="button" ?disabled=${!draft.canRedo} @click=${() => editing.redo()}>Redo</button>
          <button type="button" class="quiet" @click=${() => editing.discard()}>${draft.isEmpty ? "Close" : "Discard"}</button>
        </header>
        <p class="outcome" role="status">${editing.outcome}</p>
        ${this.#meanwhile()}
        ${draft.isEmpty ? nothing : this.#body()}`,
      host,
    );
  }

  #body() {
    const { editing } = this;
    const { operations } = editing.draft;
    return html`<ol class="operations">
        ${repeat(
          operations,
          (one) => JSON.stringify(one),
          (one, i) => this.#operation(one, i),
        )}
      </ol>
      ${this.#refusal()} ${this.#consequences()}
      <form class="apply" @submit=${(event) => this.#apply(event)}>
        <label>Reason <input name="reason" maxlength="500" autocomplete="off" placeholder="optional, kept in the history"></label>
        <button class="primary" ?disabled=${editing.isSending || editing.refusal !== null}>Apply</button>
      </form>`;
  }

  #operation(one, i) {
    const { editing } = this;
    const problems = (editing.refusal?.problems ?? []).filter((problem) => problem.operation === i + 1);
    return html`<li>
      <span class="what">${operationText(one)}</span>
      ${!one.op.startsWith("remove_") ? html`<button type="button" class="link" @click=${() => this.openForm(one)}>change</button>` : nothing}
      <button type="button" class="link" aria-label=${`Leave out: ${operationText(one)}`} @click=${() => editing.drop(i)}>leave out</button>
      ${problems.map((problem) => html`<span class="problem">${problem.field ? `${problem.field}: ` : ""}${problem.message}</span>`)}
    </li>`;
  }

  // What somebody else changed since the draft was begun, newest last.
  #meanwhile() {
    const { between, refusal } = this.editing;
    if (!between.length) return nothing;
    const clash = refusal ? "The draft does not fit with it as it is:" : "The draft fits on top of it:";
    return html`<div class="meanwhile" role="status">
      <strong>Changed meanwhile.</strong> ${clash}
      <ul>${between.map((one) => html`<li><b>${one.author_name}</b> ${one.changes}${one.reason ? html` <span class="note">${one.reason}</span>` : nothing}</li>`)}</ul>
      <button type="button" @click=${() => this.editing.rebase()}>I have seen it</button>
    </div>`;
  }

  #refusal() {
    const { refusal } = this.editing;
    return refusal ? html`<p class="alarm" role="alert">${refusal.message}</p>` : nothing;
  }

  #consequences() {
    const { preview } = this.editing;
    if (!preview) return nothing;
    const { ready, blocked, revived, skipped, approvals_needed: asks, critical_path_before: before, critical_path_after: after } = preview.consequences;
    const lines = [
      ["becomes ready", ready],
      ["waits then", blocked],
      ["can be reached again", revived],
      ["can never start", skipped.map((one) => one.task_id)],
      ["asks a person first", asks],
    ].filter(([, tasks]) => tasks.length);
    const isSame = before.join() === after.join();
    return html`<dl class="consequences" aria-label="What would follow">
      ${lines.map(([word, tasks]) => html`<div data-effect=${word}><dt>${word}</dt><dd>${few(tasks, TASKS_SHOWN, ", ")}</dd></div>`)}
      <div data-effect="critical path"><dt>longest chain</dt><dd>
        ${isSame ? html`stays ${plural(after.length, "task")}` : html`<s>${few(before, PATH_SHOWN, " › ")}</s> <span>${few(after, PATH_SHOWN, " › ")}</span>`}
      </dd></div>
    </dl>`;
  }

  #apply(event) {
    event.preventDefault();
    this.editing.apply(new FormData(event.target).get("reason"));
  }

  #key(event) {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || event.target.matches("input, textarea")) return;
    const { draft } = this.editing;
    if (event.shiftKey ? draft.canRedo : draft.canUndo) event.shiftKey ? this.editing.redo() : this.editing.undo();
    event.preventDefault();
  }
}

function few(tasks, count, glue) {
  const more = tasks.length - count;
  return `${tasks.slice(0, count).join(glue)}${more > 0 ? ` and ${more} more` : ""}`;
}
