// Which tasks the table shows, and in which order. Pure: `store` is read only, and `now` is in milliseconds.

import { attemptsMade } from "../../states.js";
import { fitsPlace } from "../filters.js";

const COLLATOR = new Intl.Collator("en", { numeric: true });

export function firstLine(task) {
  return (task.error || (task.state === "COMPLETED" ? "" : task.reason) || "").split("\n", 1)[0];
}

export function took(task, now) {
  if (!task.started_at) return null;
  return (task.ended_at ? Date.parse(task.ended_at) : now) - Date.parse(task.started_at);
}

// What model calls of a task's attempts cost, by task row; without the tasks of which nothing is known.
export function costsByTask(fold) {
  const taskOf = new Map();
  for (const attempt of fold.table("attempt").values()) taskOf.set(attempt.agent_id, attempt.task_id);
  const costs = new Map();
  for (const call of fold.table("model_call").values()) {
    if (call.cost === null || call.cost === undefined) continue;
    const task = taskOf.get(call.agent_id) ?? taskOf.get(fold.get("agent", call.agent_id)?.parent_id);
    if (task !== undefined) costs.set(task, (costs.get(task) ?? 0) + call.cost);
  }
  return costs;
}

// By column: what a row is sorted by; nothing goes last.
export function sortKeys(store, costs) {
  return {
    state: (task) => store.standings.taskLook(task).word,
    name: (task) => task.name || task.task_id,
    task_id: (task) => task.task_id,
    device: (task) => store.placeOf(task),
    attempt: (task) => attemptsMade(task),
    started: (task) => task.started_at || null,
    took: (task) => took(task, store.now()),
    cost: (task) => costs.get(task.id) ?? null,
    error: (task) => firstLine(task) || null,
  };
}

// Rows of the constellation on view that fit `filter`, by `sort`: {column, down}; without a column in the order of the plan.
// `fold` is the one on view with the draft laid over it: tasks that the draft adds have rows, those that are gone have none.
export function chooseRows(store, fold, filter, sort, costs) {
  const wanted = filter.text.toLowerCase();
  const rows = [];
  for (const task of fold.table("task").values()) {
    if (task.constellation_id !== store.constellation || task.draft === "gone") continue;
    if (!fitsPlace(store, filter, task)) continue;
    if (wanted && !`${task.task_id} ${task.name} ${firstLine(task)}`.toLowerCase().includes(wanted)) continue;
    rows.push(task);
  }
  return sortRows(rows, sortKeys(store, costs)[sort.column], sort.down).map((task) => task.id);
}

// How many tasks the constellation on view has, and the names of the devices they run on, or shall: {total, devices}.
export function countRows(store, fold) {
  const devices = new Set();
  let total = 0;
  for (const task of fold.table("task").values()) {
    if (task.constellation_id !== store.constellation || task.draft === "gone") continue;
    total += 1;
    devices.add(store.placeOf(task));
  }
  devices.delete("");
  return { total, devices: [...devices].sort() };
}

function sortRows(rows, keyOf, down) {
  if (!keyOf) return rows.sort((a, b) => a.id - b.id);
  const keyed = rows.map((task) => [keyOf(task), task]);
  keyed.sort(([a, one], [b, other]) => {
    if (a === null || b === null) return (a === null) - (b === null) || one.id - other.id;
    const order = typeof a === "number" ? a - b : COLLATOR.compare(a, b);
    return (down ? -order : order) || one.id - other.id;
  });
  return keyed.map(([, task]) => task);
}
