// What models and coding agents say while they say it. Some of it may be missing: the whole message comes with the event.

import { html, render, repeat } from "../vendor/lit.js";
import { Pace } from "./pace.js";

const SHOWN = 4_000; // the last characters of one call
const CALLS_KEPT = 50;
const DRAW_MS = 100;

export class Sayings {
  #said = new Map(); // by call and kind: {text: the last of it, end: characters so far}
  #pace = new Pace({ pause: DRAW_MS });

  constructor(panel, { store }) {
    Object.assign(this, { panel, store });
  }

  // [{call, offset, kind: "text" or "thinking", text}]
  hear(deltas) {
    for (const { call, offset, kind, text } of deltas) {
      const key = `${call} ${kind}`;
      const before = this.#said.get(key);
      const follows = before && offset === before.end;
      this.#said.set(key, { end: offset + text.length, text: ((follows ? before.text : "") + text).slice(-SHOWN) });
      if (this.#said.size > CALLS_KEPT) this.#said.delete(this.#said.keys().next().value);
    }
    this.#pace.isDue = true;
  }

  update(changes) {
    if (changes.has("model_call", "agent")) this.#pace.isDue = true;
  }

  frame(time) {
    if (this.#pace.takes(time)) this.draw();
  }

  draw() {
    const { fold } = this.store;
    const open = this.store.isLive ? [...fold.table("model_call").values()].filter((row) => row.ended_at === null) : [];
    this.panel.hidden = !open.length;
    render(html`${repeat(open, (row) => row.id, (row) => this.#call(row))}`, this.panel.querySelector(".sayings"));
  }

  #call(row) {
    const [thinking, text] = ["thinking", "text"].map((kind) => this.#said.get(`${row.id} ${kind}`)?.text ?? "");
    const agent = this.store.fold.get("agent", row.agent_id);
    return html`<li data-call=${row.id}><a href="#agent-${row.agent_id}">${agent?.name ?? "agent"}</a> <span class="note">${row.profile}</span>
      <p class="thinking" ?hidden=${!thinking}>${thinking}</p><p class="text">${text || "…"}</p></li>`;
  }
}
