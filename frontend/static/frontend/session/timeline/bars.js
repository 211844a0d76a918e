// What a timeline shows, out of the fold: bars in lanes, with what went on inside them, waits, and the critical path. Pure.
//
// Times are milliseconds; `until` null: not over. A bar is an attempt: {attempt, task, agent, from, until, look, parts}; a part
// is {kind: "model" | "tool" | "phase" | "approval", from, until, word}; a wait is {kind: "retry" | "approval" | "slot", ...}.

import { TASK_ENDED, lookOf } from "../../states.js";

export const GROUPINGS = { device: "by device", task: "by task", agent: "by agent" };
const MOST_STEPS = 100_000; // of a critical path: a graph has no circle, but rows may be strange

const time = (iso) => (iso ? Date.parse(iso) : null);

// {bars by attempt id, waits: [{task, from, until, word}]} of the constellation on view.
export function collectBars(store) {
  const { fold, constellation } = store;
  const bars = new Map();
  for (const one of fold.table("attempt").values()) {
    const task = fold.get("task", one.task_id);
    if (task?.constellation_id !== constellation) continue;
    const bar = { attempt: one.id, number: one.number, task: one.task_id, agent: one.agent_id, device: one.device_id };
    bars.set(one.id, { ...bar, from: time(one.started_at), until: time(one.ended_at), look: lookOfAttempt(store, one, task), parts: [] });
  }
  addParts(fold, bars);
  return { bars, waits: retryWaits(fold, bars) };
}

// Of one that has not ended: how its task stands.
function lookOfAttempt({ standings }, { outcome }, task) {
  return outcome || TASK_ENDED.has(task.state) ? lookOf("outcome", outcome || "running") : standings.taskLook(task);
}

function addParts(fold, bars) {
  const byAgent = new Map();
  for (const bar of bars.values()) byAgent.set(bar.agent, [...(byAgent.get(bar.agent) ?? []), bar]);
  const barOf = (agent, at) => {
    const own = byAgent.get(agent) ?? byAgent.get(fold.get("agent", agent)?.parent_id);
    return own?.findLast?.((bar) => bar.from <= at) ?? own?.[0];
  };
  const add = (agent, part) => barOf(agent, part.from)?.parts.push(part);
  const over = (row) => ({ from: time(row.started_at), until: time(row.ended_at) });
  for (const row of fold.table("phase").values()) add(row.agent_id, { kind: "phase", ...over(row), word: `phase ${row.number}: ${row.description}` });
  for (const row of fold.table("model_call").values()) add(row.agent_id, { kind: "model", ...over(row), word: `asks ${row.model || row.profile}` });
  for (const row of fold.table("evidence").values()) {
    const agent = fold.get("loop", row.loop_id)?.agent_id;
    if (agent && row.tool) add(agent, { kind: "tool", ...over(row), word: `${row.tool} ${row.target}`.trim() });
  }
  for (const row of fold.table("approval").values()) {
    if (row.agent_id) add(row.agent_id, { kind: "approval", from: time(row.asked_at), until: time(row.decided_at), word: `waits: ${row.title}` });
  }
}

// Between an attempt and the next one of the same task, or the time when that may begin.
function retryWaits(fold, bars) {
  const byTask = new Map();
  for (const bar of bars.values()) byTask.set(bar.task, [...(byTask.get(bar.task) ?? []), bar]);
  const waits = [];
  for (const [task, own] of byTask) {
    own.sort((a, b) => a.number - b.number);
    own.forEach((bar, i) => {
      const next = own[i + 1];
      const row = fold.get("task", task);
      const at = next ? next.from : row.state === "PENDING" && row.retry_at ? time(row.retry_at) : null;
      if (bar.until !== null && at !== null && at > bar.until) waits.push({ kind: "retry", task, agent: bar.agent, from: bar.until, until: at, word: "waits to be tried again" });
    });
  }
  return waits;
}

// Lanes: [{key, label, bars: [bar], rows}], each bar with its `row` in its lane, so that none hides another; `waits` by task.
export function layLanes(store, { bars, waits }, grouping) {
  const lanes = new Map();
  const keyOf = { device: (bar) => bar.device, task: (bar) => bar.task, agent: (bar) => bar.agent }[grouping];
  for (const bar of [...bars.values()].sort((a, b) => a.from - b.from || a.attempt - b.attempt)) {
    const key = keyOf(bar);
    if (!lanes.has(key)) lanes.set(key, { key, label: labelOf(store, grouping, bar), bars: [], ends: [], waits: [] });
    placeBar(lanes.get(key), bar);
  }
  if (grouping !== "device") for (const wait of waits) lanes.get(keyOf(wait))?.waits.push(wait);
  let top = 0;
  for (const lane of lanes.values()) {
    lane.top = top;
    lane.rows = lane.ends.length;
    top += lane.rows;
  }
  return { lanes: [...lanes.values()], rows: top };
}

function placeBar(lane, bar) {
  let row = lane.ends.findIndex((end) => end <= bar.from);
  if (row < 0) row = lane.ends.length;
  lane.ends[row] = bar.until ?? Infinity;
  bar.row = row;
  lane.bars.push(bar);
}

function labelOf(store, grouping, bar) {
  if (grouping === "device") return store.deviceName(bar.device) || `device ${bar.device}`;
  if (grouping === "agent") return store.fold.get("agent", bar.agent)?.name ?? `agent ${bar.agent}`;
  const task = store.fold.get("task", bar.task);
  return task.name || task.task_id;
}

// Task rows on the path that made the end as late as it is: from the task that ended last back over whoever it waited for last.
export function criticalPath(store) {
  const { fold, constellation } = store;
  const upstream = new Map();
  for (const one of fold.table("dependency").values()) {
    if (one.constellation_id !== constellation) continue;
    if (!upstream.has(one.downstream_id)) upstream.set(one.downstream_id, []);
    upstream.get(one.downstream_id).push(one.upstream_id);
  }
  const endOf = (id) => {
    const task = fold.get("task", id);
    if (!task?.started_at) return -1;
    return task.ended_at ? Date.parse(task.ended_at) : Infinity;
  };
  const latest = (ids) => ids.reduce((best, id) => (best === null || endOf(id) > endOf(best) ? id : best), null);
  const all = [...fold.table("task").values()].filter((task) => task.constellation_id === constellation).map((task) => task.id);
  const path = new Set();
  for (let at = latest(all), steps = 0; at !== null && endOf(at) >= 0 && steps < MOST_STEPS; steps++) {
    path.add(at);
    at = latest(upstream.get(at) ?? []);
  }
  return path;
}

// States as {from, until, machine, state} by subject, and waits for a slot by task, out of columns of transitions.
export function readStates({ columns }) {
  const bySubject = new Map();
  columns.at.forEach((at, i) => {
    const until = Date.parse(at);
    const from = until - (columns.spent[i] ?? 0) * 1000;
    const subject = columns.subject_id[i];
    if (!bySubject.has(subject)) bySubject.set(subject, []);
    bySubject.get(subject).push({ machine: columns.machine[i], state: columns.from_state[i], from, until });
  });
  return bySubject;
}
