// A card of what waits for a person and is no approval: an agent that is stuck, a plan that waits to be started.

import * as api from "../api.js";
import { visible } from "../command_line.js";
import { chip, element, setText } from "../dom.js";
import { duration } from "../format.js";
import { lookOf } from "../states.js";

const DOES = {
  stuck: {
    word: "Let it go on",
    done: "You let it go on.",
    act: ({ session, agent, details }) => api.goOn(session.id, agent, details.identity),
    advice: "Going on means: from now on this is no loop for its task. Its page has the evidence and other ways.",
  },
  plan: {
    word: "Start it",
    done: "You started it.",
    act: ({ details }) => api.startPlan(details.constellation),
    advice: "Nothing of it runs before somebody starts it. Look at its graph first, and change what does not fit.",
  },
};

export class EntryCard {
  #settled = false;
  #sending = false;

  // `row`: {id, asked_at, entry}; `place` as ApprovalCard has it; `end(sentence)` says that it was dealt with.
  constructor(row, { place, mayAct, end }) {
    Object.assign(this, { row, end });
    const { kind, title } = row.entry;
    this.alarm = element("p", { class: "alarm", role: "alert", hidden: true });
    this.waited = element("span", { class: "waited" });
    this.heading = element("h3", { id: `approval-${row.id}`, tabindex: -1 }, visible(title));
    this.button = mayAct ? element("button", { type: "button", class: "primary" }, DOES[kind].word) : null;
    this.button?.addEventListener("click", () => this.#act());
    this.form = this.button ? element("div", { class: "decide" }, element("div", { class: "buttons" }, this.button)) : null;
    const head = element("header", {}, chip(lookOf("ask", kind)), element("p", { class: "note when" }, this.waited), this.heading);
    const shared = { class: "approval card", "data-entry": row.entry.key, "data-kind": kind, "aria-labelledby": `approval-${row.id}` };
    this.node = element("article", shared, head, whereOf(place), ...whatOf(row.entry), this.form, this.alarm);
  }

  // `now` in milliseconds.
  tick(now) {
    setText(this.waited, `waits for ${duration(now - Date.parse(this.row.asked_at))}`);
  }

  settle(sentence) {
    this.#settled = true;
    this.form?.remove();
    this.alarm.hidden = true;
    this.node.toggleAttribute("data-settled", true);
    this.node.append(element("p", { class: "settled", role: "status" }, sentence));
  }

  get settled() {
    return this.#settled;
  }

  async #act() {
    if (this.#sending) return;
    this.#sending = true;
    const { act, done } = DOES[this.row.entry.kind];
    try {
      await act(this.row.entry);
      this.end(done);
    } catch (error) {
      setText(this.alarm, error.message);
      this.alarm.hidden = false;
    } finally {
      this.#sending = false;
      document.dispatchEvent(new Event("decided"));
    }
  }
}

function whereOf({ session, task, agent, device }) {
  const links = [session, task, agent].filter(Boolean).map(({ text, href }) => element("a", { href }, visible(text)));
  return element("p", { class: "where" }, ...links, device ? element("span", {}, `on ${visible(device)}`) : null);
}

function whatOf({ kind, details }) {
  const told = details.sentence ? element("p", {}, visible(`${details.sentence} ${details.followed ?? ""}`.trim())) : null;
  return [told, element("p", { class: "note" }, DOES[kind].advice)];
}
