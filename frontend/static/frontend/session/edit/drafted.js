// A fold with a draft laid over it: what the draft adds is there, what it removes or changes says so (`draft` of a row). Pure.
//
// A row's `draft` is "added", "removed", "changed", "theirs" where others have just changed it, or "gone" where it was removed
// and is shown all the same (removed.js); `told` says so in words.
// Rows that nobody touches have neither.

import { isChangeable } from "../../states.js";
import { removedRows } from "./removed.js";

const TOLD = { added: "To be added", removed: "To be removed", changed: "To be changed" };
const FIRST_ROW = 2 ** 50; // ids of rows that are not there yet: above those of all that are
const ROW_KEYS = { device: "wanted_device", device_type: "device_type", name: "name", description: "description", capabilities: "capabilities" };

export class DraftedFold {
  #marked = { task: new Map(), dependency: new Map() }; // rows with a mark by their ids
  #operations = [];
  #constellation = null;
  #theirs = {};
  #moves = new Map(); // whether a dependency goes over to a replacement, by its id: as it was when the draft was laid
  #goneOf = null; // the constellation of which rows that are gone are shown
  #mostGone = 0; // tasks of those, the latest
  #isBare = true; // nothing is laid over the rows
  #madeAt = { rows: null, seq: -1 };

  // `defaults`: {table: {field: value}}, what a row has of which nothing more is said; `personOf(author)` names who edited.
  constructor(fold, defaults, personOf = String) {
    Object.assign(this, { fold, defaults, personOf });
  }

  get rows() {
    return this.fold.rows;
  }

  get seq() {
    return this.fold.seq;
  }

  // Shows what was removed from a constellation, by its id: the latest `most` tasks. null: nothing of it.
  showGone(constellation, most) {
    this.#goneOf = constellation;
    this.#mostGone = most;
    this.#begin();
  }

  // The operations of a draft (draft.js), the constellation's id, and words on tasks that others have changed, by ids of tasks.
  lay(operations, constellation, theirs = {}) {
    this.#operations = operations;
    this.#constellation = constellation;
    this.#theirs = theirs;
    this.#moves.clear();
    this.#begin();
  }

  #begin() {
    this.#isBare = this.#goneOf === null && !this.#operations.length && !Object.keys(this.#theirs).length;
    this.#madeAt = { rows: null, seq: -1 };
  }

  table(name) {
    const rows = this.fold.table(name);
    return this.#isBare || !this.#marks(name).size ? rows : new Map([...rows, ...this.#marks(name)]);
  }

  get(name, id) {
    return (!this.#isBare && this.#marks(name).get(id)) || this.fold.get(name, id);
  }

  recall(name, id) {
    return (!this.#isBare && this.#marks(name).get(id)) || this.fold.recall(name, id);
  }

  // The operation by which a task is added that has this row; undefined for one that is there.
  adding(row) {
    const task = row >= FIRST_ROW ? this.get("task", row) : null;
    return task && this.#operations.find(({ op, parameters }) => op === "add_task" && parameters.task_id === task.task_id);
  }

  #marks(name) {
    if (!(name in this.#marked)) return EMPTY;
    const { fold } = this;
    if (this.#madeAt.rows !== fold.rows || this.#madeAt.seq !== fold.seq) {
      this.#madeAt = { rows: fold.rows, seq: fold.seq };
      this.#marked = laid(fold, this.defaults, this.#operations, this.#constellation, this.#theirs, this.#moves);
      if (this.#goneOf !== null) this.#addGone();
    }
    return this.#marked[name];
  }

  #addGone() {
    const there = [...this.fold.table("task").values(), ...this.#marked.task.values()].filter((row) => row.constellation_id === this.#goneOf);
    const tasks = there.map((row) => [row.task_id, row]);
    const { defaults, personOf } = this;
    const found = removedRows(this.fold, this.#goneOf, { tasks, defaults, personOf, most: this.#mostGone });
    for (const name of ["task", "dependency"]) for (const row of found[name]) this.#marked[name].set(row.id, row);
  }
}

const EMPTY = new Map();

// {task, dependency}: the marked rows by their ids.
function laid(fold, defaults, operations, constellation, theirs, moves) {
  const of = (name) => [...fold.table(name).values()].filter((row) => row.constellation_id === constellation);
  const tasks = new Map(of("task").map((row) => [row.task_id, row]));
  const edges = of("dependency");
  const found = { task: new Map(), dependency: new Map() };
  const blank = { ...defaults.task, constellation_id: constellation };
  let next = FIRST_ROW;
  const mark = (row, draft, more = {}) => found.task.set(row.id, { ...row, ...more, draft, told: TOLD[draft] });
  for (const [taskId, told] of Object.entries(theirs)) {
    const row = tasks.get(taskId);
    if (row && isChangeable(row)) found.task.set(row.id, { ...row, draft: "theirs", told });
  }
  const tie = (from, to, type, condition) => {
    const [up, down] = [tasks.get(from), tasks.get(to)];
    if (!up || !down || edges.some((one) => one.upstream_id === up.id && one.downstream_id === down.id)) return;
    const row = { ...defaults.dependency, id: (next += 1), constellation_id: constellation, upstream_id: up.id, downstream_id: down.id };
    found.dependency.set(row.id, { ...row, type: type ?? (condition ? "CONDITIONAL" : "SUCCESS_ONLY"), condition: condition ?? "", draft: "added" });
  };
  const cut = (wanted) => {
    for (const edge of edges) if (wanted(edge)) found.dependency.set(edge.id, { ...edge, ...found.dependency.get(edge.id), draft: "removed" });
  };
  const named = (one) => (edge) => (one.dependency_id ? edge.dependency_id === one.dependency_id : edge.upstream_id === tasks.get(one.from)?.id && edge.downstream_id === tasks.get(one.to)?.id);

  // New tasks first: what ties them may stand before them.
  for (const { op, parameters } of operations) {
    if (op !== "add_task" || tasks.has(parameters.task_id)) continue;
    const like = tasks.get(parameters.copy);
    const row = { ...blank, ...(like && shownOf(like)), ...written(parameters), id: (next += 1), task_id: parameters.task_id, state: parameters.after?.length ? "WAITING_DEPENDENCY" : "PENDING" };
    tasks.set(row.task_id, row);
    mark(row, "added");
  }
  for (const { op, parameters: one } of operations) {
    const row = tasks.get(one.task_id);
    if (op === "add_task") {
      for (const from of one.after ?? []) tie(from, one.task_id);
      const old = tasks.get(one.replaces);
      for (const edge of old ? edges.filter((each) => each.upstream_id === old.id) : []) {
        const to = fold.get("task", edge.downstream_id);
        if (!moves.has(edge.id)) moves.set(edge.id, Boolean(to) && isChangeable(to)); // what a scene counts on stays
        if (to && moves.get(edge.id)) tie(one.task_id, to.task_id, edge.type, edge.condition);
      }
    } else if (op === "update_task" && row) {
      mark(row, "changed", written(one));
    } else if (op === "remove_task" && row) {
      mark(row, "removed");
      cut((edge) => edge.upstream_id === row.id || edge.downstream_id === row.id);
    } else if (op === "add_dependency") {
      tie(one.from, one.to, one.type, one.condition);
    } else if (op === "remove_dependency") {
      cut(named(one));
    } else if (op === "update_dependency") {
      const edge = edges.find(named(one));
      if (edge) found.dependency.set(edge.id, { ...edge, type: one.type ?? (one.condition ? "CONDITIONAL" : edge.type), condition: one.condition ?? edge.condition, draft: "changed" });
    }
  }
  return found;
}

// What an operation says of a task, as its row has it.
function written(parameters) {
  const row = {};
  for (const [key, field] of Object.entries(ROW_KEYS)) if (parameters[key] != null) row[field] = parameters[key];
  return row;
}

function shownOf(task) {
  return Object.fromEntries(Object.values(ROW_KEYS).map((field) => [field, task[field]]));
}
