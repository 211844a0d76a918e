// One approval that was settled: what was asked, what exactly was allowed, by whom and why. What still waits is on its card.

import { actionView } from "../../actions.js";
import { clock } from "../../format.js";
import { lookOf } from "../../states.js";
import { html, nothing, render } from "../../vendor/lit.js";
import { proposalView } from "../../proposal_view.js";
import { block, chipOf, closing } from "./parts.js";
import { RowView } from "./row_view.js";

const WORDS = { approved: "approved", rejected: "rejected", expired: "It has expired.", withdrawn: "It has been withdrawn." };

export class ApprovalView extends RowView {
  constructor(host, { store }) {
    super(host, { store, concerned: ["approval"] });
  }

  find(id) {
    const approval = this.store.fold.get("approval", id);
    return approval?.state === "waiting" ? null : approval;
  }

  draw() {
    const { fold } = this.store;
    const row = this.row !== null && fold.get("approval", this.row);
    if (!row) return;
    const task = fold.get("task", row.subject_id);
    const what = row.kind === "edit" ? proposalView(row.action, row.observed) : actionView(row.action ?? {});
    render(
      html`<header><h2 tabindex="-1">${row.title}</h2>${closing(this.store)}</header>
        <div class="state">${chipOf(lookOf("ask", row.kind))} ${row.edited ? html`<span class="note">with changes</span>` : nothing}</div>
        <p class="fate">${this.#fate(row)}${row.decided_at ? html`, <time datetime=${row.decided_at}>${clock(row.decided_at)}</time>` : nothing}</p>
        ${row.reason ? html`<p class="reason">${row.reason}</p>` : nothing}
        ${task ? html`<p>of <a href=${`#task-${task.id}`}>${task.name || task.task_id}</a></p>` : nothing}
        ${what.length ? html`<div class="action">${what}</div>` : nothing}
        ${row.answer === null ? nothing : html`<h3>Answer</h3>${block(row.answer)}`}
        <p class="note">asked ${clock(row.asked_at)}${row.used_at ? `, used ${clock(row.used_at)}` : ""}</p>`,
      this.host,
    );
  }

  #fate(row) {
    const word = ["question", "elicitation"].includes(row.kind) && row.state === "approved" ? "answered" : WORDS[row.state];
    return row.decided_by ? html`It was ${word} by <b>${this.store.personOf(row.decided_by)}</b>` : word;
  }
}
