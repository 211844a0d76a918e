// What can be asked of the tasks that are chosen in the table: a button for each command that some of them can mean, and what came of it.

import { plural } from "../../format.js";
import { html, nothing } from "../../vendor/lit.js";
import { COMMANDS, commandTasks } from "./bulk.js";

const REFUSALS_SHOWN = 50;

export class BulkTools {
  #told = null; // what came of the last command: {text, refused}
  #isBusy = false;

  // `redraw()` draws the table, `choose(ids)` has those chosen.
  constructor({ store, redraw, choose }) {
    Object.assign(this, { store, redraw, choose });
  }

  // `ids` of tasks that are chosen.
  draw(ids) {
    return html`${this.#buttons(ids)} ${this.#outcome()}`;
  }

  forget() {
    this.#told = null;
  }

  #buttons(ids) {
    const { store } = this;
    if (!store.config.may_operate || !store.isLive || !ids.size) return nothing;
    const tasks = [...ids].map((id) => store.fold.get("task", id)).filter(Boolean);
    const button = ([kind, { name, fits, isDangerous }]) => {
      const count = tasks.filter(fits).length;
      if (!count) return nothing;
      return html`<button data-bulk=${kind} class=${isDangerous ? "danger" : ""} ?disabled=${this.#isBusy} @click=${() => this.#command(kind, tasks)}>${name} ${count.toLocaleString("en")}${isDangerous ? "…" : ""}</button>`;
    };
    return html`<span class="note chosen" role="status">${plural(tasks.length, "task")} chosen</span>
      ${Object.entries(COMMANDS).map(button)}
      <button class="quiet" @click=${() => this.choose([])}>Choose none</button>`;
  }

  #outcome() {
    if (!this.#told) return nothing;
    const { text, refused } = this.#told;
    const shown = refused.slice(0, REFUSALS_SHOWN);
    return html`<div class="refusals" role="alert">
      <p>${text} <button class="quiet" aria-label="Close the message" @click=${() => this.#tell(null)}>✕</button></p>
      <ul>
        ${shown.map(({ task, message }) => html`<li><button class="link" @click=${() => this.store.select({ kind: "task", id: task.id })}>${task.name || task.task_id}</button>: ${message}</li>`)}
        ${refused.length > shown.length ? html`<li>and ${plural(refused.length - shown.length, "other")}</li>` : nothing}
      </ul>
    </div>`;
  }

  #tell(told) {
    this.#told = told;
    this.redraw();
  }

  async #command(kind, tasks) {
    const { name } = COMMANDS[kind];
    const onProgress = (done, total) => this.#tell({ text: `${name}: ${done} of ${total}…`, refused: [] });
    this.#isBusy = true;
    const came = await commandTasks(kind, tasks, onProgress).finally(() => (this.#isBusy = false));
    if (!came) return this.redraw();
    const taken = came.sent - came.refused.length;
    const refused = came.refused.length ? `, ${came.refused.length.toLocaleString("en")} refused` : "";
    this.choose(came.refused.map(({ task }) => task.id));
    this.#tell({ text: `${name}: ${taken.toLocaleString("en")} of ${plural(came.sent, "task")} taken${refused}.`, refused: came.refused });
  }
}
