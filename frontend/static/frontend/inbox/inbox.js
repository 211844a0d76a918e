// The inbox: one list of all that waits for a person, kept fresh, and below it what is worth a look.

import * as api from "../api.js";
import { ApprovalList } from "../approval_list.js";
import { pageData, setText } from "../dom.js";
import { Poll } from "../poll.js";
import { showDecided } from "./decided.js";
import { EntryCard } from "./entry_card.js";
import { drawNotices } from "./notices.js";

const LOOK_MS = 1500;
const LONGEST_MS = 30_000;
const CLOCK_MS = 1000;

const config = pageData("config");
const skew = config.now - Date.now(); // server's clock minus ours
const now = () => Date.now() + skew;
const at = (selector) => document.querySelector(selector);

// What a card is made of: the approval's row, or for other entries one that looks like it.
function rowOf(entry) {
  const shared = { id: Number(entry.key.split("-")[1]), asked_at: entry.since };
  return { ...(entry.approval ?? {}), ...shared, entry };
}

function placeOf({ entry: { session, task, agent, device } }) {
  return {
    session: session ? { text: session.title, href: `/sessions/${session.id}/` } : null,
    task: task ? { text: task.name, href: `/sessions/${session.id}/#task-${task.id}` } : null,
    agent: agent ? { text: "agent", href: `/agents/${agent}/` } : null,
    device,
  };
}

function makeCard(row, end) {
  if (row.entry.approval) return null;
  return new EntryCard(row, { place: placeOf(row), mayAct: config.may_operate, end });
}

async function fateOf(row) {
  if (!row.entry.approval) return "It waits no more.";
  const { state, kind, decided_by: by, decided_by_name: name } = await api.approval(row.id);
  if (state === "expired") return "It has expired.";
  if (state === "withdrawn") return "It has been withdrawn.";
  const word = kind === "question" && state === "approved" ? "answered" : state;
  return `It was ${word}${by ? ` by ${by === config.me ? "you" : name}` : ""}.`;
}

function watchWaiting() {
  const options = { placeOf, fateOf, makeCard, mayDecide: !config.refusal, now, fallback: at("#waiting-title") };
  const list = new ApprovalList(at("#cards"), { ...options, onChange: (count) => (at("#none").hidden = count > 0) });
  const look = async () => {
    const { entries, more } = await api.inbox();
    list.show(entries.filter((entry) => entry.waits).map(rowOf));
    drawNotices(at("#notices"), entries.filter((entry) => !entry.waits), now());
    at("#more").hidden = !more;
    at("#cards").removeAttribute("aria-busy");
  };
  const poll = new Poll(look, { everyMs: LOOK_MS, longestMs: LONGEST_MS, onTrouble });
  document.addEventListener("decided", () => poll.soon());
  setInterval(() => list.tick(), CLOCK_MS);
  poll.soon();
}

function onTrouble(error) {
  setText(at("#trouble"), error ? `The list is not fresh, trying again: ${error.message}` : "");
  at("#trouble").hidden = !error;
}

if (at("#decided")) showDecided(at("#decided"), now).catch(onTrouble);
else watchWaiting();
