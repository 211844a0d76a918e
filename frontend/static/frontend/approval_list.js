// A list of cards that follows what waits: new ones come at the end, decided ones say so and go.

import { Refused, decideApproval } from "./api.js";
import { ApprovalCard } from "./approval_card.js";

const SETTLED_MS = 4000; // that a decided card stays to be read

export class ApprovalList {
  #cards = new Map();

  // `placeOf(row)` as ApprovalCard wants it; `fateOf(row)` resolves to a sentence on how somebody else ended it;
  // `onChange(count)` hears how many cards there are; `fallback` takes the focus when the last card goes. `makeCard(row, end)`
  // gives the card of a row that is no approval, or null; it calls `end(sentence)` when it was dealt with.
  constructor(host, { placeOf, fateOf, onChange, fallback, mayDecide, now, makeCard = () => null }) {
    Object.assign(this, { host, placeOf, fateOf, onChange, fallback, mayDecide, now, makeCard });
  }

  // `rows`: all that wait now.
  show(rows) {
    const waiting = new Set(rows.map((row) => row.id));
    for (const row of [...rows].sort(byAge)) if (!this.#cards.has(row.id)) this.#add(row);
    for (const [id, card] of this.#cards) if (!waiting.has(id) && !card.settled) this.#gone(card);
    this.tick();
    this.onChange(this.#cards.size);
  }

  tick() {
    for (const card of this.#cards.values()) card.tick(this.now());
  }

  #add(row) {
    const decide = (asked, body) => this.#decide(asked, body);
    const end = (sentence) => this.#end(this.#cards.get(row.id), sentence);
    const card = this.makeCard(row, end) ?? new ApprovalCard(row, { place: this.placeOf(row), decide, mayDecide: this.mayDecide });
    this.#cards.set(row.id, card);
    this.host.append(card.node);
    if (location.hash === `#approval-${row.id}`) card.heading.focus();
  }

  async #decide(row, body) {
    try {
      await decideApproval(row.id, body);
      this.#end(this.#cards.get(row.id), ownSentence(body));
    } catch (error) {
      if (!(error instanceof Refused)) throw new Error(`The server cannot be reached (${error.message}). Nobody knows whether it was decided; it is not sent again by itself.`);
      throw error;
    } finally {
      document.dispatchEvent(new Event("decided"));
    }
  }

  async #gone(card) {
    this.#end(card, await this.fateOf(card.row).catch(() => "It has been decided."));
  }

  #end(card, sentence) {
    if (!card || card.settled) return;
    const focused = card.node.contains(document.activeElement);
    card.settle(sentence);
    if (focused) this.#focusAfter(card);
    setTimeout(() => this.#remove(card), SETTLED_MS);
  }

  #focusAfter(card) {
    const open = [...this.#cards.values()].filter((one) => !one.settled);
    const next = open.find((one) => one.row.id > card.row.id) ?? open.at(-1);
    (next?.heading ?? this.fallback).focus();
  }

  #remove(card) {
    this.#cards.delete(card.row.id);
    card.node.remove();
    this.onChange(this.#cards.size);
  }
}

// The oldest first.
function byAge(one, other) {
  return Date.parse(one.asked_at) - Date.parse(other.asked_at) || one.id - other.id;
}

function ownSentence({ decision, answer }) {
  if (decision === "reject") return "You rejected this.";
  return answer === undefined ? "You approved this." : `You answered: ${answer}`;
}
