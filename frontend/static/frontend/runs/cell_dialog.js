// What a task came to in one run, beside what it came to in the run before.

import * as api from "../api.js";
import { visible } from "../command_line.js";
import { json } from "../format.js";
import { html, nothing, render } from "../vendor/lit.js";

export class CellDialog {
  constructor(node) {
    this.node = node;
  }

  // `cell` and `older` as the grid has them; `older` may be null.
  async open(taskId, cell, older) {
    const shown = [cell, older].filter(Boolean);
    this.#draw(taskId, null);
    this.node.showModal();
    try {
      this.#draw(taskId, await Promise.all(shown.map(({ id }) => api.task(id))));
    } catch (error) {
      this.#draw(taskId, [], error.message);
    }
  }

  #draw(taskId, tasks, trouble = "") {
    const content = tasks === null ? html`<p class="note">Reading …</p>` : html`<div class="sides">${tasks.map(sideView)}</div>`;
    render(
      html`<header><h2 id="cell-title">Results of ${visible(taskId)}</h2><button type="button" class="quiet" @click=${() => this.node.close()}>Close</button></header>
        ${trouble ? html`<p class="alarm" role="alert">${trouble}</p>` : nothing}${content}`,
      this.node,
    );
  }
}

function sideView({ state, result, error }, place) {
  const told = error || (result === null ? "no result" : json(result));
  return html`<section><h3>${place ? "The run before" : "This run"}: ${state}</h3><pre tabindex="0">${visible(told)}</pre></section>`;
}
