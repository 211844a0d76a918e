// Saved views: names for addresses of this page. They are kept in this browser, because all that a view is stands in its address.

import { visible } from "../command_line.js";
import { html, nothing, render } from "../vendor/lit.js";

const PLACE = "orrery.views";
const MOST = 20;
const NAME_LENGTH = 40;
const READY = [
  { name: "All", address: "?" },
  { name: "Waiting for me", address: "?state=waiting" },
  { name: "At work", address: "?state=running" },
  { name: "Failed this week", address: "?state=failed&period=week" },
];

export class SavedViews {
  // `goTo(address)` shows one: an address is a query string that begins with a question mark.
  constructor(host, goTo) {
    Object.assign(this, { host, goTo });
  }

  // `shown`: the query string of the address now.
  show(shown) {
    const now = shown || "?";
    const own = readViews();
    const isNamed = [...READY, ...own].some(({ address }) => address === now);
    render(
      html`${READY.map((view) => this.#button(view, now))}${own.map((view) => html`<span class="own">${this.#button(view, now)}<button
            type="button" class="quiet" aria-label=${`Forget the view ${view.name}`} @click=${() => this.#forget(view, now)}>×</button></span>`)}
      ${isNamed || own.length >= MOST ? nothing : html`<form @submit=${(event) => this.#save(event, now)}><label class="unseen" for="view-name">Name of this view</label>
          <input id="view-name" name="view" maxlength=${NAME_LENGTH} placeholder="Save this view as …" autocomplete="off"><button>Save</button></form>`}`,
      this.host,
    );
  }

  #button({ name, address }, now) {
    return html`<button type="button" aria-pressed=${String(address === now)} @click=${() => this.goTo(address)}>${visible(name)}</button>`;
  }

  #save(event, now) {
    event.preventDefault();
    const name = event.target.elements.view.value.trim();
    if (!name) return;
    writeViews([...readViews().filter((view) => view.name !== name), { name, address: now }]);
    this.show(now);
  }

  #forget(view, now) {
    writeViews(readViews().filter(({ name }) => name !== view.name));
    this.show(now);
  }
}

// What another version or a person has written there may be anything.
function readViews() {
  try {
    const found = JSON.parse(localStorage.getItem(PLACE) ?? "[]");
    return found.filter(({ name, address }) => typeof name === "string" && String(address).startsWith("?")).slice(0, MOST);
  } catch {
    return [];
  }
}

function writeViews(views) {
  localStorage.setItem(PLACE, JSON.stringify(views));
}
