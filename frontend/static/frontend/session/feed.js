// The event feed: the newest events as sentences, newest first, in a list that never grows beyond FEED_ROWS.

import { element, icon } from "../dom.js";
import { clock } from "../format.js";
import { atBeginning, sentence } from "../sentences.js";

export const FEED_ROWS = 200;
const WRITE_MS = 100; // under a flood the list is written this often, not every frame
const FLOOD_MS = 400; // and so often where each time would fill it anew: nobody reads that

export class Feed {
  #waiting = [];
  #written = 0;
  #wanted = { kind: "", by: "", text: "" };
  #known = new Set(); // kinds and authors that were told of

  constructor(list, { fold, deviceName, personOf = null, onOpen }) {
    Object.assign(this, { list, fold, deviceName, personOf });
    list.addEventListener("click", (event) => {
      const link = event.target.closest("button[data-row]");
      if (link) onOpen(Number(link.dataset.row));
    });
  }

  // Sentences are made at once, while the fold holds what they speak of; of a flood only the newest are.
  push(events) {
    for (const event of events.slice(-FEED_ROWS)) {
      const said = sentence(event, this.fold, this.deviceName, this.personOf);
      if (said) this.#waiting.push({ event, said });
    }
    this.#waiting = this.#waiting.slice(-FEED_ROWS);
  }

  tick(time) {
    const pause = this.#waiting.length < FEED_ROWS / 2 ? WRITE_MS : FLOOD_MS;
    if (!this.#waiting.length || time - this.#written < pause) return;
    this.#written = time;
    this.#tellKinds(this.#waiting);
    const newest = Number(this.list.firstElementChild?.dataset.seq ?? 0);
    const newer = this.#waiting.filter(({ event }) => event.seq > newest);
    const older = this.#waiting.filter(({ event }) => event.seq <= newest); // what was before the page came, asked for and late
    this.list.prepend(...this.#rows(newer));
    this.list.append(...this.#rows(older));
    this.#waiting = [];
    while (this.list.childElementCount > FEED_ROWS) this.list.lastElementChild.remove();
  }

  #rows(entries) {
    const rows = entries.reverse().map((entry) => row(entry, this.personOf));
    for (const one of rows) one.hidden = !this.#isWanted(one);
    return rows;
  }

  // Shows those of one kind, of one author, with a text; empty: any.
  filter(wanted) {
    this.#wanted = wanted;
    for (const one of this.list.children) one.hidden = !this.#isWanted(one);
  }

  #isWanted({ dataset, textContent }) {
    const { kind, by, text } = this.#wanted;
    return (!kind || dataset.type === kind) && (!by || dataset.by === by) && (!text || textContent.toLowerCase().includes(text.toLowerCase()));
  }

  // `onKinds(kinds, authors)` hears of those that were not there before.
  #tellKinds(entries) {
    const isNew = (value) => !this.#known.has(value) && this.#known.add(value);
    const kinds = entries.map(({ event }) => event.type).filter(isNew);
    const authors = entries.map(({ event }) => event.by).filter((by) => isNew(`by ${by}`));
    if (kinds.length + authors.length) this.onKinds?.(kinds, authors);
  }

  // Authors have names that had none.
  named() {
    for (const one of this.list.children) one.querySelector("time").title = whence(one.dataset.seq, this.personOf(one.dataset.by));
    for (const one of this.list.querySelectorAll("[data-author]")) one.textContent = atBeginning(this.personOf(one.dataset.author));
  }

  // Forgets what it has told of; what came after event `seq` it keeps.
  clear(seq = Infinity) {
    this.#waiting = this.#waiting.filter(({ event }) => event.seq > seq);
    for (const one of [...this.list.children]) if (Number(one.dataset.seq) <= seq) one.remove();
  }
}

const whence = (seq, name) => `event ${seq}, by ${name}`;

function row({ event, said }, personOf) {
  const parts = said.parts.map((part) => {
    if (typeof part === "string") return part;
    if (part.author) return element("b", { "data-author": part.author }, part.text);
    return element("button", { type: "button", class: "link", "data-row": part.task }, part.text);
  });
  return element(
    "li",
    { "data-tone": said.tone, "data-type": event.type, "data-by": event.by, "data-seq": event.seq },
    icon(said.shape),
    element("span", { class: "said", title: said.states }, ...parts),
    element("time", { datetime: event.at, title: whence(event.seq, personOf ? personOf(event.by) : event.by) }, clock(event.at)),
  );
}
