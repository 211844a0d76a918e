// The event feed: the newest events as sentences, newest first, in a list that never grows beyond FEED_ROWS.

import { element, icon } from "./dom.js";
import { clock } from "./format.js";
import { sentence } from "./sentences.js";

export const FEED_ROWS = 200;
const WRITE_MS = 100; // under a flood the list is written this often, not every frame

export class Feed {
  #waiting = [];
  #written = 0;

  constructor(list, { fold, deviceName, onOpen }) {
    Object.assign(this, { list, fold, deviceName });
    list.addEventListener("click", (event) => {
      const link = event.target.closest("button[data-row]");
      if (link) onOpen(Number(link.dataset.row));
    });
  }

  // Sentences are made at once, while the fold holds what they speak of; of a flood only the newest are.
  push(events) {
    for (const event of events.slice(-FEED_ROWS)) {
      const said = sentence(event, this.fold, this.deviceName);
      if (said) this.#waiting.push({ event, said });
    }
    this.#waiting = this.#waiting.slice(-FEED_ROWS);
  }

  tick(time) {
    if (!this.#waiting.length || time - this.#written < WRITE_MS) return;
    this.#written = time;
    this.list.prepend(...this.#waiting.reverse().map(row));
    this.#waiting = [];
    while (this.list.childElementCount > FEED_ROWS) this.list.lastElementChild.remove();
  }

  clear() {
    this.#waiting = [];
    this.list.replaceChildren();
  }
}

function row({ event, said }) {
  const parts = said.parts.map((part) =>
    typeof part === "string" ? part : element("button", { type: "button", class: "link", "data-row": part.task }, part.text),
  );
  return element(
    "li",
    { "data-tone": said.tone, "data-type": event.type },
    icon(said.shape),
    element("span", { class: "said" }, ...parts),
    element("time", { datetime: event.at, title: `event ${event.seq}, by ${event.by}` }, clock(event.at)),
  );
}
