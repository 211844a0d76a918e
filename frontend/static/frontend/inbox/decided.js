// What was decided: newest first, by whom, and exactly what was allowed.

import * as api from "../api.js";
import { actionView } from "../actions.js";
import { visible } from "../command_line.js";
import { chip, element } from "../dom.js";
import { ago } from "../format.js";
import { proposalView } from "../proposal_view.js";
import { lookOf } from "../states.js";

// Draws the first page into `host`, and each further one when it is asked for.
export async function showDecided(host, now) {
  const list = element("ol", { class: "decisions" });
  const more = element("button", { type: "button", hidden: true }, "Older decisions");
  let before = null;
  const load = async () => {
    const { entries, next } = await api.decided(before);
    list.append(...entries.map((entry) => decision(entry, now())));
    before = next;
    more.hidden = next === null;
  };
  more.addEventListener("click", () => load());
  await load();
  host.replaceChildren(...(list.childElementCount ? [list, more] : [element("p", { class: "card note" }, "Nothing has been decided yet.")]));
  host.removeAttribute("aria-busy");
}

function decision({ approval, session, task }, now) {
  const { kind, state, title, decided_by_name: by, decided_at: at, reason, answer, edited } = approval;
  const isAnswer = state === "approved" && ["question", "elicitation"].includes(kind);
  const look = lookOf("approval", state);
  const head = element("header", {}, chip(isAnswer ? { ...look, word: "Answered" } : look), chip(lookOf("ask", kind)), element("h3", {}, visible(title)));
  const when = element("time", { datetime: at, title: new Date(at).toLocaleString() }, ago(at, now));
  const links = [element("a", { href: `/sessions/${session.id}/` }, visible(session.title))];
  if (task) links.push(element("a", { href: `/sessions/${session.id}/#task-${task.id}` }, visible(task.name)));
  const where = element("p", { class: "where" }, element("span", {}, `by ${visible(by || "nobody")}`), when, ...links);
  const said = [
    reason ? element("p", { class: "note" }, `Reason: ${visible(reason)}`) : null,
    answer === null ? null : element("p", {}, "Answer: ", element("code", {}, visible(typeof answer === "string" ? answer : JSON.stringify(answer)))),
    edited ? element("p", { class: "note" }, "The action was changed before it was approved: this is what was allowed.") : null,
  ];
  return element("li", { class: "card approval", "data-decided": approval.id, "data-kind": kind }, head, where, ...said, allowed(approval));
}

// The action whole, as its digest was approved.
function allowed({ kind, action, observed, state }) {
  const shown = kind === "edit" ? proposalView(action, observed) : actionView(action ?? {});
  if (!shown.length) return null;
  const word = state === "approved" ? "Exactly what was allowed" : "What was asked for";
  return element("details", {}, element("summary", {}, word), element("div", { class: "action" }, ...shown));
}
