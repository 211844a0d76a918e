// One edit: who made it and why, what it added, removed and changed, and the way to take it back.

import * as api from "../../api.js";
import { html, nothing, render } from "../../vendor/lit.js";
import { clock } from "../../format.js";
import { editId } from "../store.js";
import { closing } from "./parts.js";
import { RowView } from "./row_view.js";

const ENTRIES_SHOWN = 50;
const VALUE_SHOWN = 300; // characters of a changed value

export class EditView extends RowView {
  constructor(host, { store, outbox }) {
    super(host, { store, concerned: ["edit"] });
    this.outbox = outbox;
  }

  find(id) {
    return this.store.fold.get("edit", id);
  }

  draw() {
    const edit = this.find(this.row);
    if (!edit) return;
    const undone = [...this.store.fold.table("edit").values()].find((one) => one.undoes_id === edit.id);
    const diff = edit.diff ?? [];
    const mayUndo = this.store.config.may_operate && this.store.isLive && !undone && diff.length;
    const undoWord = edit.undoes_id ? "Do it again" : "Take it back";
    render(
      html`<header><h2 tabindex="-1">Version ${edit.version}</h2>${closing(this.store)}</header>
        <p>${edit.undoes_id ? html`Taken back by` : html`Edited by`} <b>${this.store.personOf(edit.author)}</b>${edit.at ? html`, <time datetime=${edit.at}>${clock(edit.at)}</time>` : nothing}</p>
        ${edit.reason ? html`<p class="reason">${edit.reason}</p>` : nothing}
        <ul class="diff">${diff.slice(0, ENTRIES_SHOWN).map((entry) => this.#entry(entry, edit))}</ul>
        ${diff.length > ENTRIES_SHOWN ? html`<p class="note">and ${diff.length - ENTRIES_SHOWN} more</p>` : nothing}
        ${undone ? html`<p class="note">It was taken back: <a href="#edit-${undone.id}">version ${undone.version}</a>.</p>` : nothing}
        ${mayUndo ? html`<button type="button" @click=${() => this.#undo(edit)}>${undoWord}</button>` : nothing}`,
      this.host,
    );
  }

  #entry(entry, edit) {
    const name = entry.task ?? entry.dependency;
    const sign = { added: "+", removed: "−", updated: "~" }[entry.change] ?? "~";
    const known = entry.task && [...this.store.fold.table("task").values()].find((row) => row.task_id === name && row.constellation_id === edit.constellation_id);
    return html`<li data-change=${entry.change}><b aria-hidden="true">${sign}</b> ${entry.change} ${entry.task ? "task" : "dependency"}
      ${known ? html`<a href="#task-${known.id}">${name}</a>` : html`<code>${name}</code>`}
      ${entry.change === "updated" ? html`<dl>${Object.entries(entry.fields ?? {}).map(([key, [before, after]]) => html`<dt>${key.replaceAll("_", " ")}</dt><dd><del>${short(before)}</del> <ins>${short(after)}</ins></dd>`)}</dl>` : nothing}
    </li>`;
  }

  #undo(edit) {
    const version = () => String(this.store.present.get("constellation", edit.constellation_id)?.version);
    return this.outbox.send("Taking the edit back", (id) => api.undoEdit(edit.constellation_id, edit.id, editId(id)), version);
  }
}

function short(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text === "" || value === null ? "nothing" : text.slice(0, VALUE_SHOWN);
}
