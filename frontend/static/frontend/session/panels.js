// The panels beside the graph: agents, requests and their results, progress. Each draws what the fold holds.

import { chip, element, icon, setText } from "../dom.js";
import { newest } from "../fold.js";
import { ago, between, brief, json, plural, shorten } from "../format.js";
import { html, nothing, render, repeat } from "../vendor/lit.js";
import { chipOf } from "./inspect/parts.js";
import { TASK_STATES, lookOf } from "../states.js";
import { NEEDS, shownState } from "./filters.js";
import { AGENT_ENDED } from "./standings.js";

const AGENTS_SHOWN = 12;
const REQUESTS_SHOWN = 20;
const RESULT_SHOWN = 20_000; // characters of a result

// `nameOf(device id)` names a device, `standOf(agent)` is its look. Those that are held up come first, the newest of the ended last.
export function drawAgents(list, fold, { nameOf, standOf, now }) {
  if (list.matches(":active")) return; // a link that is being pressed must stay where it is
  const { shown, others } = chooseAgents([...fold.table("agent").values()], standOf);
  const rows = repeat(shown, ({ agent }) => agent.id, ({ agent, look }) => agentRow(agent, look, nameOf, now));
  const more = others.length ? html`<li class="more">${rest(others)}</li>` : nothing;
  render(html`${rows}${shown.length ? more : html`<li class="more">No agent has begun yet.</li>`}`, list);
}

// Thousands may have ended: none but those that are shown are asked how they stand. `agents` are in the order of their ids.
function chooseAgents(agents, standOf) {
  const withLook = (agent) => ({ agent, look: standOf(agent) });
  const isCounted = (agent) => agent.machine !== "constellation_agent" && AGENT_ENDED.has(agent.state);
  const place = ({ agent, look }) => (look.tone === "held" ? -1 : rank(agent));
  const open = agents.filter((agent) => !isCounted(agent)).map(withLook);
  open.sort((a, b) => place(a) - place(b) || b.agent.id - a.agent.id);
  const ended = agents.filter(isCounted);
  const room = Math.max(0, AGENTS_SHOWN - open.length);
  const shown = [...open.slice(0, AGENTS_SHOWN), ...ended.slice(Math.max(0, ended.length - room)).reverse().map(withLook)];
  return { shown, others: [...open.slice(AGENTS_SHOWN).map(({ agent }) => agent), ...ended.slice(0, Math.max(0, ended.length - room))] };
}

// The constellation agent first, then who works, then who has ended.
function rank(agent) {
  if (agent.machine === "constellation_agent") return AGENT_ENDED.has(agent.state) ? 1 : 0;
  return 2;
}

function agentRow(agent, look, nameOf, now) {
  const place = nameOf(agent.device_id) || agent.platform;
  const told = agent.name.endsWith(` on ${place}`) ? "" : place;
  return html`<li data-agent=${agent.id} data-state=${agent.state}>
    ${chipOf(look, [agent.state, agent.reason].filter(Boolean).join(": "))}
    <a class="name" href=${`#agent-${agent.id}`}>${agent.name}</a>
    <span class="note">${told}</span>
    <span class="note time">${AGENT_ENDED.has(agent.state) ? "" : between(agent.entered_at, null, now)}</span>
  </li>`;
}

function rest(agents) {
  const counts = new Map();
  for (const { state } of agents) counts.set(state, (counts.get(state) ?? 0) + 1);
  return `and ${[...counts].map(([state, count]) => `${count.toLocaleString("en")} ${state}`).join(", ")}`;
}

export function drawRequests(list, fold, now) {
  const items = [...fold.table("inbox").values()].filter((item) => item.kind === "interaction").sort((a, b) => b.id - a.id);
  const open = new Set([...list.querySelectorAll("details[open]")].map((one) => one.closest("[data-request]").dataset.request));
  list.replaceChildren(...items.slice(0, REQUESTS_SHOWN).map((item) => request(item, fold, now, open)));
  if (!items.length) list.replaceChildren(element("li", { class: "more" }, "Nothing has been asked yet."));
}

function request(item, fold, now, open) {
  const ended = item.state === "done" || item.state === "refused";
  const graph = newest(fold.table("constellation"), (one) => one.interaction_id === item.id);
  const stands = !ended && graph?.state === "PAUSED";
  const look = stands ? lookOf("constellation", "PAUSED") : lookOf("outcome", ended ? item.outcome || item.state : item.state);
  const head = element(
    "div",
    { class: "head" },
    chip(look),
    element("span", { class: "name", title: title(item, graph) }, title(item, graph)),
    element("time", { class: "note", datetime: item.created_at }, ago(item.created_at, now)),
  );
  const attributes = { "data-request": item.id, "data-state": item.state, "data-outcome": item.outcome };
  return element("li", attributes, head, ended ? result(item, open.has(String(item.id))) : null);
}

// What goes on from a constellation says so itself: the graph's name would be that of the request before.
function title({ payload }, graph) {
  const goesOn = payload.reopen || payload.fork;
  return (!goesOn && graph?.name) || shorten((payload.request ?? planName(payload)) || "request", 60);
}

const planNames = new WeakMap(); // by payload: a plan can be megabytes, and the panel is drawn five times a second

function planName(payload) {
  if (!planNames.has(payload)) planNames.set(payload, /^[ \t]*"?name"?\s*:\s*"?([^\n",]+)/m.exec(payload.plan ?? "")?.[1] ?? "");
  return planNames.get(payload);
}

function result(item, open) {
  const { summary, ...figures } = typeof item.result === "object" && item.result ? item.result : { summary: item.result };
  const shown = Object.entries(figures).filter(([, value]) => typeof value !== "object");
  return element(
    "div",
    { class: "result" },
    summary ? element("p", { class: "summary" }, String(summary)) : null,
    shown.length ? element("dl", { class: "figures" }, ...shown.map(([key, value]) => figure(key, value))) : null,
    element(
      "details",
      { open },
      element("summary", {}, "Whole result"),
      element("pre", {}, shorten(json(item.result) ?? "", RESULT_SHOWN)),
    ),
  );
}

function figure(key, value) {
  const seconds = key === "wall" || key === "waiting" || key.endsWith("_s");
  const text = typeof value === "number" && seconds ? `${value.toFixed(1)} s` : brief(value);
  return element("div", {}, element("dt", {}, key.replace(/_s$/, "").replaceAll("_", " ")), element("dd", {}, text));
}

// How many tasks of the constellation on view are shown in each state: skipped ones apart from cancelled, and those that wait for a
// person apart from those that run or wait for something else.
export function tally(store) {
  const counts = Object.fromEntries([...TASK_STATES, "SKIPPED", ...Object.keys(NEEDS)].map((state) => [state, 0]));
  for (const task of store.fold.table("task").values()) {
    if (task.constellation_id === store.constellation) counts[shownState(store, task)] += 1;
  }
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const ended = counts.COMPLETED + counts.FAILED + counts.CANCELLED + counts.SKIPPED;
  return { counts, total, ended };
}

export function drawProgress(host, { counts, total, ended }) {
  for (const bar of host.querySelectorAll("[data-part]")) {
    const share = total ? (counts[bar.dataset.part] / total) * 100 : 0;
    bar.setAttribute("width", `${share}%`);
    bar.setAttribute("x", `${sharesBefore(bar.dataset.part, counts, total)}%`);
  }
  host.querySelector("[role=progressbar]").setAttribute("aria-valuenow", total ? Math.round((ended / total) * 100) : 0);
  setText(host.querySelector(".count"), total ? `${ended.toLocaleString("en")} of ${plural(total, "task")} ended` : "no tasks yet");
}

const PARTS = ["COMPLETED", "SKIPPED", "CANCELLED", "FAILED", ...Object.keys(NEEDS), "RUNNING"];

function sharesBefore(part, counts, total) {
  if (!total) return 0;
  const before = PARTS.slice(0, PARTS.indexOf(part)).reduce((sum, state) => sum + counts[state], 0);
  return (before / total) * 100;
}

// A button for each state that occurs: it leads to the tasks in that state, one after the other. Those that wait for a person have
// theirs above all views (needs_you.js).
export function drawCounters(host, { counts }) {
  const shown = Object.entries(counts).filter(([state, count]) => count > 0 && !(state in NEEDS));
  host.replaceChildren(
    ...shown.map(([state, count]) => {
      const look = lookOf("task", state);
      const attributes = { type: "button", class: "counter", "data-tone": look.tone, "data-find": state, title: `Show the next task: ${look.word}` };
      return element("button", attributes, icon(look.shape), `${count.toLocaleString("en")} `, element("span", {}, look.word.toLowerCase()));
    }),
  );
}
