// Moments of a session: what lies between two of them. Pure.

const TOLD = ["state", "name", "wanted_device", "device_id", "tool", "arguments", "priority", "timeout", "max_attempts", "attempt", "result", "error", "phases", "confirm"];

// What became of the tasks and dependencies of one constellation between two folds: {added, removed, changed: [{task, was, is}]}.
// Dependencies are told by the names of their ends. `was` and `is` have the fields that differ.
export function compare(before, after, constellation) {
  const [old, now] = [before, after].map((fold) => tasksOf(fold, constellation));
  const changed = [];
  for (const [id, task] of now) {
    const was = old.get(id);
    const fields = was ? TOLD.filter((name) => JSON.stringify(was[name]) !== JSON.stringify(task[name])) : [];
    if (fields.length) changed.push({ task: task.task_id, was: picked(was, fields), is: picked(task, fields) });
  }
  const [oldLines, newLines] = [
    [before, old],
    [after, now],
  ].map(([fold, tasks]) => linesOf(fold, tasks, constellation));
  return {
    added: [...onlyIn(now, old), ...[...newLines].filter((line) => !oldLines.has(line))],
    removed: [...onlyIn(old, now), ...[...oldLines].filter((line) => !newLines.has(line))],
    changed,
  };
}

const KNOWN = 6; // folds that are kept

// The one of `folds` from which least has to be told about the moment after event `seq`: what happened in between, and rows that it
// has not. Most rows come with the plan: a fold from before it lacks them all.
export function nearest(folds, seq) {
  const most = Math.max(...folds.map((fold) => fold.size));
  const cost = (fold) => (fold.seq === seq ? 0 : Math.abs(fold.seq - seq) + most - fold.size);
  return folds.reduce((best, fold) => (cost(fold) < cost(best) ? fold : best));
}

// Those of `folds` that are kept, oldest first: of more than KNOWN the one goes whose neighbours differ least.
export function spread(folds) {
  const sorted = [...folds].sort((a, b) => a.seq - b.seq);
  while (sorted.length > KNOWN) {
    let closest = 1;
    for (let i = 2; i < sorted.length - 1; i++) if (gap(sorted, i) < gap(sorted, closest)) closest = i;
    sorted.splice(closest, 1);
  }
  return sorted;
}

function gap(sorted, i) {
  const [before, after] = [sorted[i - 1], sorted[i + 1]];
  return after.seq - before.seq + Math.abs(after.size - before.size);
}

function tasksOf(fold, constellation) {
  return new Map([...fold.table("task")].filter(([, task]) => task.constellation_id === constellation));
}

function onlyIn(some, others) {
  return [...some].filter(([id]) => !others.has(id)).map(([, task]) => task.task_id);
}

function linesOf(fold, tasks, constellation) {
  const rows = [...fold.table("dependency").values()].filter((row) => row.constellation_id === constellation);
  const name = (id) => tasks.get(id)?.task_id ?? String(id);
  return new Set(rows.map((row) => `${name(row.upstream_id)} → ${name(row.downstream_id)}`));
}

function picked(row, fields) {
  return Object.fromEntries(fields.map((name) => [name, row[name]]));
}
