// What somebody else has just made of the graph on view: told by name and age, and marked on the tasks that it changed.

import * as api from "../../api.js";
import { changesOf } from "../../edit_sentences.js";
import { ago } from "../../format.js";
import { html, nothing, render, repeat } from "../../vendor/lit.js";

const SHOWN_MS = 120_000; // of the server's time, after which a change is no news
const EDITS_SHOWN = 4;

export class Others {
  // `onMarks(words)` gets {id of a task: "Changed by ada"} whenever that is different.
  constructor(host, { store, onMarks }) {
    Object.assign(this, { host, store, onMarks, edits: [] }); // newest first
    this.draw();
  }

  told(events) {
    const { config, constellation } = this.store;
    const heard = [];
    for (const { data, at } of events) {
      for (const edit of data.add?.edit ?? []) {
        if (edit.constellation_id !== constellation || edit.author === config.me) continue;
        heard.unshift({ id: edit.id, version: edit.version, author: edit.author, constellation, at, diff: data.diff ?? edit.diff ?? [] });
      }
    }
    if (!heard.length) return;
    this.edits = [...heard, ...this.edits].slice(0, EDITS_SHOWN);
    for (const author of new Set(heard.map((one) => one.author))) this.#learn(heard.find((one) => one.author === author));
    this.#changed();
  }

  tick() {
    const now = this.store.now();
    const recent = this.edits.filter((one) => now - Date.parse(one.at) < SHOWN_MS);
    if (recent.length === this.edits.length) return this.draw();
    this.edits = recent;
    this.#changed();
  }

  clear() {
    if (!this.edits.length) return;
    this.edits = [];
    this.#changed();
  }

  draw() {
    const { store, host } = this;
    const edits = store.isLive ? this.edits : [];
    host.hidden = !edits.length;
    const line = (one) => html`<li><b>${store.personOf(one.author)}</b> ${changesOf(one.diff)} <time class="note" aria-hidden="true" datetime=${one.at}>${ago(one.at, store.now())}</time>
      <button type="button" class="link" @click=${() => store.select({ kind: "edit", id: one.id })}>version ${one.version}</button></li>`;
    render(edits.length ? html`<ul>${repeat(edits, (one) => one.id, line)}</ul><button type="button" class="quiet" aria-label="Close the message" @click=${() => this.clear()}>✕</button>` : nothing, host);
  }

  #changed() {
    const words = {};
    for (const { diff, author } of [...this.edits].reverse()) {
      for (const { change, task } of diff) if (task) words[task] = `${change === "added" ? "Added" : "Changed"} by ${this.store.personOf(author)}`;
    }
    this.onMarks(words);
    this.draw();
  }

  // The page begins with few names; that of an author whom it meets is asked for once.
  async #learn({ author, constellation, id }) {
    const { people } = this.store.config;
    if (author in people || !author.includes(":")) return;
    const { author_name: name } = await api.editMade(constellation, id).catch(() => ({ author_name: "" }));
    if (!name) return;
    people[author] = name;
    this.#changed();
  }
}
