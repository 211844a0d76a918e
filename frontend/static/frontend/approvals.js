// The inbox of all that waits for a person, kept fresh.

import * as api from "./api.js";
import { ApprovalList } from "./approval_list.js";
import { pageData, setText } from "./dom.js";
import { ago } from "./format.js";
import { Poll } from "./poll.js";

const LOOK_MS = 1500;
const LONGEST_MS = 30_000;
const CLOCK_MS = 1000;

const config = pageData("config");
const skew = config.now - Date.now(); // server's clock minus ours
const now = () => Date.now() + skew;
const at = (selector) => document.querySelector(selector);
let places = {}; // by approval: what REST does not know of tasks and devices
const list = new ApprovalList(at("#cards"), { placeOf, fateOf, onChange, fallback: at("#waiting-title"), mayDecide: !config.refusal, now });
const poll = new Poll(look, { everyMs: LOOK_MS, longestMs: LONGEST_MS, onTrouble });

function placeOf({ id, session, subject_id: subject, agent }) {
  const { session: title, task, device } = places[id] ?? {};
  return {
    session: { text: title || `session ${session}`, href: `/sessions/${session}/` },
    task: task ? { text: task, href: `/sessions/${session}/#task-${subject}` } : null,
    agent: agent ? { text: "agent", href: `/agents/${agent}/` } : null,
    device,
  };
}

async function look() {
  const { results, next } = await api.waitingApprovals();
  const rows = results.filter((row) => row.kind !== "callback");
  if (rows.some((row) => !(row.id in places))) places = await api.approvalPlaces();
  list.show(rows);
  at("#more").hidden = next === null;
  at("#cards").removeAttribute("aria-busy");
}

function onChange(count) {
  at("#none").hidden = count > 0;
}

function onTrouble(error) {
  setText(at("#trouble"), error ? `The list is not fresh, trying again: ${error.message}` : "");
  at("#trouble").hidden = !error;
}

// The same page again, of which the decisions are taken over: one template makes them, here and at first.
async function refreshDecided() {
  const response = await fetch(location.pathname, { headers: { Accept: "text/html" } });
  if (!response.ok || response.redirected) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = page.querySelector("#decided");
  if (fresh) at("#decided").replaceWith(document.adoptNode(fresh));
  tellTimes();
}

async function fateOf(row) {
  await refreshDecided();
  const { word = "decided", by = "", name = "" } = at(`[data-decided="${row.id}"]`)?.dataset ?? {};
  const who = by === config.me ? "you" : name;
  return word === "expired" || word === "withdrawn" ? `It has ${word === "expired" ? "expired" : "been withdrawn"}.` : `It was ${word}${who ? ` by ${who}` : ""}.`;
}

function tellTimes() {
  for (const time of document.querySelectorAll("#decided time")) {
    setText(time, ago(time.dateTime, now()));
    time.title = new Date(time.dateTime).toLocaleString();
  }
}

function refreshLater() {
  refreshDecided().catch((error) => console.warn("the decisions were not refreshed:", error.message));
}

document.addEventListener("decided", () => {
  refreshLater();
  poll.soon();
});
tellTimes();
setInterval(() => list.tick(), CLOCK_MS);
poll.soon();
