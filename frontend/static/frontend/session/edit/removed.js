// What edits have removed from a constellation and nobody has added again, as the edits themselves tell it. Pure.

import { clock } from "../../format.js";

export const SHOWN_AT_ONCE = 200; // tasks: those that were removed last, and as many more whenever more are asked for
const FIRST_ROW = 2 ** 51; // ids of their rows: above those of a draft

// How many tasks there are to be shown.
export function countRemoved(fold, constellation) {
  return removedTasks(fold, constellation).size;
}

// {task: [row], dependency: [row]}, marked as gone; a task says who removed it and when, and has the `edit` that did.
// Of dependencies only those with both ends on view. `tasks` are the rows that are on view, by their ids of the plan; of what was
// removed it is the latest `most` tasks.
export function removedRows(fold, constellation, { tasks, defaults, personOf, most }) {
  const removed = [...removedTasks(fold, constellation)].slice(-most);
  const shown = new Map(tasks);
  const task = removed.map(([name, { row, edit }], i) => {
    const told = `Removed by ${personOf(edit.author)}, ${clock(edit.at)}`;
    const ghost = { ...defaults.task, ...row, id: FIRST_ROW + i, constellation_id: constellation, draft: "gone", told, edit: edit.id };
    shown.set(name, ghost);
    return ghost;
  });
  const joined = new Set(rowsOf(fold, "dependency", constellation).map((row) => `${row.upstream_id} ${row.downstream_id}`));
  const dependency = [];
  for (const { row } of lastRemoved(fold, constellation, "dependencies").values()) {
    const [up, down] = [shown.get(row.from), shown.get(row.to)];
    if (!up || !down || joined.has(`${up.id} ${down.id}`)) continue;
    joined.add(`${up.id} ${down.id}`);
    const ends = { constellation_id: constellation, upstream_id: up.id, downstream_id: down.id };
    dependency.push({ ...defaults.dependency, ...row, ...ends, id: FIRST_ROW + removed.length + dependency.length, draft: "gone" });
  }
  return { task, dependency };
}

function removedTasks(fold, constellation) {
  const removed = lastRemoved(fold, constellation, "tasks");
  if (removed.size) for (const row of rowsOf(fold, "task", constellation)) removed.delete(row.task_id);
  return removed;
}

// {row as it was, the edit that removed it} by names, in the order of the edits.
function lastRemoved(fold, constellation, part) {
  const found = new Map();
  for (const edit of rowsOf(fold, "edit", constellation).sort((a, b) => a.version - b.version)) {
    for (const [name, row] of Object.entries(edit.before?.[part] ?? {})) {
      found.delete(name);
      if (row && edit.after[part][name] === null) found.set(name, { row, edit });
    }
  }
  return found;
}

function rowsOf(fold, table, constellation) {
  return [...fold.table(table).values()].filter((row) => row.constellation_id === constellation);
}
