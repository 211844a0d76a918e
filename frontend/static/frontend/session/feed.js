// The event feed: the newest events as sentences, newest first, in a list that never grows beyond FEED_ROWS.

import { element, icon } from "../dom.js";
import { clock } from "../format.js";
import { atBeginning, sentence } from "../sentences.js";

export const FEED_ROWS = 200;
const WRITE_MS = 100; // under a flood the list is written this often, not every frame
const FLOOD_MS = 400; // and so often where each time would fill it anew: nobody reads that
const FLOOD_ROWS = 50; // of which then no more are listed...
const CALM_MS = 1000; // ...until there has been no flood for so long

export class Feed {
  #waiting = [];
  #entries = []; // what is told of, oldest first: listed are the newest of them
  #written = 0;
  #floodedAt = -Infinity;
  #wanted = { kind: "", by: "", text: "" };
  #known = new Set(); // kinds and authors that were told of

  constructor(list, { fold, deviceName, personOf = null, onOpen }) {
    Object.assign(this, { list, fold, deviceName, personOf, isScrolled: false });
    list.addEventListener("scroll", () => (this.isScrolled = list.scrollTop > 0), { passive: true });
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
    const isFlood = this.#waiting.length >= FEED_ROWS / 2;
    const isShort = time - this.#floodedAt < CALM_MS && !this.#isNarrowed && !this.isScrolled;
    const isDue = this.#waiting.length || (!isShort && this.list.childElementCount < this.#entries.length);
    if (!isDue || time - this.#written < (isFlood ? FLOOD_MS : WRITE_MS)) return;
    this.#written = time;
    if (isFlood) this.#floodedAt = time;
    this.#tellKinds(this.#waiting);
    this.#takeUp(this.#waiting);
    this.#waiting = [];
    this.#list(isShort ? FLOOD_ROWS : FEED_ROWS);
  }

  // What was before the page came is asked for, and late.
  #takeUp(entries) {
    const newest = this.#entries.at(-1)?.event.seq ?? 0;
    const [newer, older] = [[], []];
    for (const entry of entries) (entry.event.seq > newest ? newer : older).push(entry);
    this.#entries = [...older, ...this.#entries, ...newer].slice(-FEED_ROWS);
  }

  // Makes the rows of those of the newest entries that are not listed yet, above and below those that are.
  #list(most) {
    const shown = this.#entries.slice(-most);
    const { firstElementChild: first, lastElementChild: last } = this.list;
    const [above, below] = [Number(first?.dataset.seq ?? 0), Number(last?.dataset.seq ?? 0)];
    this.list.prepend(...this.#rows(shown.filter(({ event }) => event.seq > above)));
    this.list.append(...this.#rows(shown.filter(({ event }) => event.seq < below)));
    while (this.list.childElementCount > shown.length) this.list.lastElementChild.remove();
  }

  #rows(entries) {
    const rows = entries.reverse().map((entry) => row(entry, this.personOf));
    for (const one of rows) one.hidden = !this.#isWanted(one);
    return rows;
  }

  get #isNarrowed() {
    return Object.values(this.#wanted).some(Boolean);
  }

  // Shows those of one kind, of one author, with a text; empty: any.
  filter(wanted) {
    this.#wanted = wanted;
    this.#list(FEED_ROWS);
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
    const isLater = ({ event }) => event.seq > seq;
    this.#waiting = this.#waiting.filter(isLater);
    this.#entries = this.#entries.filter(isLater);
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
