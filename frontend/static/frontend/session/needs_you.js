// How much of what is on view waits for a person, above all views: a counter that filters them, and the way from one to the next.

import { plural } from "../format.js";
import { lookOf, shapePath } from "../states.js";
import { html, nothing, render } from "../vendor/lit.js";
import { EVERYTHING, NEEDS } from "./filters.js";
import { Pace } from "./pace.js";

const SAID = { you: ["needs you", "need you"], others: ["needs somebody else", "need somebody else"] };

export class NeedsYou {
  #pace = new Pace({ isDue: true });

  constructor(host, { store }) {
    Object.assign(this, { host, store, found: [] });
  }

  update(changes) {
    if (changes.has("approval", "task", "constellation", "actor")) this.#pace.isDue = true;
  }

  show() {
    this.#pace.isDue = true;
  }

  select() {
    this.draw();
  }

  narrowed() {
    this.draw();
  }

  frame(time) {
    if (this.#pace.takes(time)) this.draw();
  }

  // What only others may decide is counted where nothing waits for the reader.
  draw() {
    this.#pace.isDue = false;
    const { store } = this;
    const needing = store.standings.needing(store.constellation);
    const { state } = store.filter;
    const whose = needing.some((one) => one.whose === "you") || (!needing.length && NEEDS[state] === "you") ? "you" : "others";
    const own = Object.keys(NEEDS).find((name) => NEEDS[name] === whose);
    this.found = needing.filter((one) => one.whose === whose);
    const isPressed = state === own;
    this.host.hidden = !this.found.length && !isPressed;
    const look = lookOf("stands", `needs_${whose}`);
    const at = this.found.findIndex(({ kind, id }) => store.isSelected(kind, id));
    const { length } = this.found;
    const step = (by, sign, label) => html`<button type="button" data-step=${by} aria-label=${label} title=${label} ?disabled=${!length} @click=${(event) => this.#step(by, event)}>${sign}</button>`;
    render(
      html`<button type="button" class="counter" data-tone=${look.tone} aria-pressed=${String(isPressed)} title="Show only what waits for a person" @click=${(event) => this.#press(isPressed ? "" : own, event)}>
          <svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${shapePath(look.shape)}></path></svg>${length.toLocaleString("en")} <span>${SAID[whose][length === 1 ? 0 : 1]}</span>
        </button>
        ${step(-1, "‹", "The one before that waits for a person")} ${step(1, "›", "The next that waits for a person")}
        <span class="unseen" role="status">${at < 0 ? nothing : `${at + 1} of ${plural(length, "thing")} waiting`}</span>`,
      this.host,
    );
  }

  #press(state, event) {
    this.store.narrow({ ...EVERYTHING, state });
    if (state && !this.found.some(({ kind, id }) => this.store.isSelected(kind, id))) this.#step(1, event);
  }

  // Round and round. The keyboard stays on the button, for the one after that, or goes to the card of what has no place of its own;
  // who points is led to the details, which on a phone are elsewhere.
  #step(by, { detail: clicks }) {
    const { store, found } = this;
    const at = found.findIndex(({ kind, id }) => store.isSelected(kind, id));
    const next = found.at((at < 0 && by < 0 ? 0 : at) + by) ?? found[0];
    const pressed = document.activeElement;
    store.select({ kind: next.kind, id: next.id });
    const card = next.kind === "approval" ? document.getElementById(`approval-${next.id}`) : null;
    if (card || !clicks) (card ?? pressed).focus();
  }
}
