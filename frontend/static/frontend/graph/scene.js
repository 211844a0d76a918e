// A constellation as nodes and edges by number, with its layout: what both renderers draw. Pure but for the fold it reads.

import { FOLD_FROM, foldGraph, layerOf } from "./folding.js";
import { NODE, layoutSteps } from "./layout.js";
import { dependencyState } from "../states.js";
import { plural, shorten } from "../format.js";

const TYPE_WORDS = { UNCONDITIONAL: "always", COMPLETION_ONLY: "when ended" };
const MAX_LABEL = 30; // characters of a condition on its edge

// What of a box of tasks has to be said first, by the tone of their looks.
const PRESSING = ["failed", "held", "running", "pending", "waiting", "cancelled", "done"];

const PLACED = ["id", "upstream_id", "downstream_id", "type", "condition", "draft"]; // what of a dependency its place depends on

export class Scene {
  #edgeBoxes = null;
  #boxes = new Map(); // what a box shows, by its number, until one of its tasks changes
  #last = []; // rows that were there when they were drawn last

  // `folded`: null for every task by itself, or the ids of those that shall be, whatever is around them.
  constructor(fold, constellationId, { lookOf, folded = null }) {
    Object.assign(this, { fold, lookOf });
    const tasks = rowsOf(fold, "task", constellationId);
    this.rows = rowsOf(fold, "dependency", constellationId);
    this.opened = folded?.size ?? -1;
    this.taskIds = tasks.map((task) => task.id);
    this.dependencies = this.#number(tasks, this.rows, folded);
    this.drafted = {
      nodes: this.groups.flatMap((group, i) => (!group && this.task(i)?.draft ? [[i, this.task(i).draft]] : [])),
      edges: this.dependencies.flatMap((rows, i) => (rows.length === 1 && rows[0].draft ? [[i, rows[0].draft]] : [])),
    }; // [[number, draft]]
    this.incident = this.ids.map(() => []);
    this.edges.forEach(([from, to], i) => {
      this.incident[from].push(i);
      this.incident[to].push(i);
    });
  }

  // Whether the same tasks and dependencies are there again, at the same places: how they look now is asked for each time.
  fits(constellationId, folded) {
    if (this.opened > 0 || this.opened !== (folded?.size ?? -1) || this.drafted.nodes.length || this.drafted.edges.length) return false;
    const tasks = rowsOf(this.fold, "task", constellationId);
    if (tasks.length !== this.total || tasks.some((task, i) => task.id !== this.taskIds[i] || task.draft)) return false;
    const rows = rowsOf(this.fold, "dependency", constellationId);
    if (rows.length !== this.rows.length || rows.some((row, i) => row !== this.rows[i] && PLACED.some((name) => row[name] !== this.rows[i][name]))) return false;
    return !this.foldsOtherwise;
  }

  // Rows of any node may have changed.
  forget() {
    this.#boxes.clear();
  }

  // Finds the places of all nodes and edges for a view {width, height}, in steps of a few milliseconds.
  *placeIn(view) {
    this.layout = yield* layoutSteps(this.count, this.edges, view, (i) => this.label(i) !== "");
  }

  // Gives numbers to nodes and edges, of which each stands for one row or, folded, for several; returns the rows of each edge.
  #number(tasks, dependencies, folded) {
    const place = new Map(tasks.map((task, i) => [task.id, i]));
    const inside = dependencies.filter((one) => place.has(one.upstream_id) && place.has(one.downstream_id));
    const ends = inside.map((one) => [place.get(one.upstream_id), place.get(one.downstream_id)]);
    const drafted = new Set(inside.filter((one) => one.draft).flatMap((one) => [one.upstream_id, one.downstream_id]));
    const isOpen = ({ id, draft }) => folded.has(id) || Boolean(draft) || drafted.has(id);
    const of = { isOpen: (i) => isOpen(tasks[i]), isDone: (i) => tasks[i].state === "COMPLETED" };
    const { groups, crowds } = folded === null || tasks.length < FOLD_FROM ? { groups: [], crowds: [] } : foldGraph(tasks.length, ends, of);
    this.crowds = crowds.map((nodes) => ({ ids: nodes.map((node) => tasks[node].id), folded: String(layerOf(nodes, of.isDone).map((node) => tasks[node].id)) }));
    const groupOf = new Map(groups.flatMap((group) => group.nodes.map((node) => [node, group])));
    Object.assign(this, { ids: [], groups: [], index: new Map(), edges: [], edgeIndex: new Map() });
    tasks.forEach((task, i) => {
      const group = groupOf.get(i);
      if (!group || group.nodes[0] === i) {
        this.ids.push(task.id);
        this.groups.push(group ? { kind: group.kind, ids: group.nodes.map((node) => tasks[node].id) } : null);
      }
      if (!group) this.index.set(task.id, this.ids.length - 1);
    });
    this.groups.forEach((group, node) => group?.ids.forEach((id) => this.index.set(id, node)));
    return this.#numberEdges(inside);
  }

  #numberEdges(dependencies) {
    const known = new Map();
    const rows = [];
    for (const one of dependencies) {
      const [from, to] = [this.index.get(one.upstream_id), this.index.get(one.downstream_id)];
      if (from === to) continue;
      const key = from * this.ids.length + to;
      if (!known.has(key)) {
        known.set(key, this.edges.push([from, to]) - 1);
        rows.push([]);
      }
      rows[known.get(key)].push(one);
      this.edgeIndex.set(one.id, known.get(key));
    }
    return rows;
  }

  // Nodes that are drawn; `total`: tasks.
  get count() {
    return this.ids.length;
  }

  get total() {
    return this.taskIds.length;
  }

  // The rows that node `i` stands for.
  tasksOf(i) {
    return (this.groups[i]?.ids ?? [this.ids[i]]).map((id) => this.#row(id)).filter(Boolean);
  }

  // The row of a task, or what a box of them shows as if it were one, with its `box`.
  task(i) {
    if (!this.groups[i]) return (this.#last[i] = this.#row(this.ids[i]) ?? this.#last[i]);
    if (!this.#boxes.has(i)) this.#boxes.set(i, boxOf(this.groups[i].kind, this.tasksOf(i), this.lookOf));
    return this.#boxes.get(i);
  }

  // A row of node `i` has changed.
  touch(i) {
    this.#boxes.delete(i);
  }

  // Whether other tasks would be drawn as one box now, as others have completed.
  get foldsOtherwise() {
    const isDone = (id) => this.#row(id)?.state === "COMPLETED";
    return this.crowds.some(({ ids, folded }) => String(layerOf(ids, isDone)) !== folded);
  }

  // The task that something is joined to which comes before node `i`, or after it; null where that could be any of several.
  joint(i, isBefore) {
    const tasks = this.tasksOf(i);
    if (this.groups[i]?.kind === "layer") return null;
    return isBefore ? tasks[0] : tasks.at(-1);
  }

  #row(id) {
    return this.fold.recall("task", id);
  }

  dependency(i) {
    const [first] = this.dependencies[i];
    return this.fold.get("dependency", first.id) ?? first;
  }

  // Of several that are drawn as one: that which keeps from starting, else that which is not decided.
  edgeState(i) {
    const rows = this.dependencies[i];
    if (rows.length === 1) return this.#stateOf(rows[0]);
    const states = new Set(rows.map((one) => this.#stateOf(one)));
    return ["never", "open"].find((state) => states.has(state)) ?? "held";
  }

  #stateOf(dependency) {
    const [from, to] = [this.#row(dependency.upstream_id), this.#row(dependency.downstream_id)];
    return from && to ? dependencyState(this.fold.get("dependency", dependency.id) ?? dependency, from, to) : "open";
  }

  label(i) {
    if (this.dependencies[i].length > 1) return "";
    const { type, condition } = this.dependency(i);
    return type === "CONDITIONAL" ? shorten(condition, MAX_LABEL) : (TYPE_WORDS[type] ?? "");
  }

  look(i) {
    const task = this.task(i);
    return task.box?.look ?? this.lookOf(task);
  }

  // The points an edge passes: its two ends and, between, entry to and exit from each layer it crosses.
  points(i) {
    const { x, y, bends, down } = this.layout;
    const [from, to] = this.edges[i];
    const half = down ? { x: 0, y: NODE.height / 2 } : { x: NODE.width / 2, y: 0 };
    const points = [{ x: x[from] + half.x, y: y[from] + half.y }];
    for (const bend of bends[i]) {
      points.push({ x: bend.x - half.x, y: bend.y - half.y }, { x: bend.x + half.x, y: bend.y + half.y });
    }
    points.push({ x: x[to] - half.x, y: y[to] - half.y });
    return points;
  }

  // What each edge's curve stays within.
  get boxes() {
    return (this.#edgeBoxes ??= this.edges.map((_, i) => this.box(i)));
  }

  box(i) {
    const { x, y, bends } = this.layout;
    const [from, to] = this.edges[i];
    const box = { left: Math.min(x[from], x[to]), right: Math.max(x[from], x[to]), top: Math.min(y[from], y[to]), bottom: Math.max(y[from], y[to]) };
    for (const bend of bends[i]) {
      box.left = Math.min(box.left, bend.x);
      box.right = Math.max(box.right, bend.x);
    }
    return box;
  }

  // Where an edge's text stands: past the middle of its first stretch, so that the texts of one task's edges part.
  labelAt(i) {
    const [from, to] = this.points(i);
    return { x: from.x + (to.x - from.x) * 0.58, y: from.y + (to.y - from.y) * 0.58 };
  }

  nodeAt(point) {
    const { x, y } = this.layout;
    for (let i = 0; i < this.count; i++) {
      if (Math.abs(point.x - x[i]) <= NODE.width / 2 && Math.abs(point.y - y[i]) <= NODE.height / 2) return i;
    }
    return -1;
  }

  // The node that an arrow key leads to from node `i`: along the edges, or within the layer.
  neighbour(i, key) {
    const { layer, layers, down } = this.layout;
    const turned = down ? key : { ArrowRight: "ArrowDown", ArrowLeft: "ArrowUp", ArrowDown: "ArrowRight", ArrowUp: "ArrowLeft" }[key];
    const place = layers[layer[i]].indexOf(i);
    if (turned === "ArrowRight") return layers[layer[i]][place + 1] ?? i;
    if (turned === "ArrowLeft") return layers[layer[i]][place - 1] ?? i;
    const [near, far] = turned === "ArrowDown" ? [0, 1] : [1, 0];
    const next = this.incident[i].filter((edge) => this.edges[edge][near] === i).map((edge) => this.edges[edge][far]);
    return this.#nearest(i, next);
  }

  #nearest(i, nodes) {
    const { x, y } = this.layout;
    const far = (node) => Math.hypot(x[node] - x[i], y[node] - y[i]);
    return nodes.reduce((best, node) => (best === i || far(node) < far(best) ? node : best), i);
  }
}

function rowsOf(fold, table, constellationId) {
  const found = [];
  for (const row of fold.table(table).values()) if (row.constellation_id === constellationId) found.push(row);
  return found.sort((a, b) => a.id - b.id);
}

// What a box shows: how many tasks there are, how many of them in which state, and the state that has to be said first.
function boxOf(kind, tasks, lookOf) {
  const looks = new Map();
  for (const task of tasks) {
    const look = lookOf(task);
    const known = looks.get(look.word) ?? { look, count: 0 };
    looks.set(look.word, { look, count: known.count + 1 });
  }
  const said = [...looks.values()].sort((a, b) => PRESSING.indexOf(a.look.tone) - PRESSING.indexOf(b.look.tone));
  const words = said.map(({ look, count }) => `${count.toLocaleString("en")} ${look.word.toLowerCase()}`);
  const [first, last] = [tasks[0], tasks.at(-1)];
  const states = new Set(tasks.map((task) => task.state));
  const state = ["RUNNING", "FAILED", "PENDING", "WAITING_DEPENDENCY", "CANCELLED"].find((one) => states.has(one)) ?? "COMPLETED";
  return {
    ...first,
    name: `⊞ ${plural(tasks.length, "task")}${kind === "row" ? " in a row" : ""}`,
    task_id: `${first.task_id} … ${last.task_id}`,
    state,
    started_at: least(tasks.map((task) => task.started_at)),
    ended_at: tasks.every((task) => task.ended_at) ? most(tasks.map((task) => task.ended_at)) : null,
    box: { look: { ...said[0].look, word: words[0] }, words: words.join(", "), detail: words.length > 1 ? words.join(", ") : `${first.task_id} … ${last.task_id}` },
  };
}

function least(times) {
  return times.reduce((a, b) => (b && (!a || b < a) ? b : a), null);
}

function most(times) {
  return times.reduce((a, b) => (b && (!a || b > a) ? b : a), null);
}
