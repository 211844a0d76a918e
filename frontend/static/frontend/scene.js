// A constellation as nodes and edges by number, with its layout: what both renderers draw. Pure but for the fold it reads.

import { NODE, layout } from "./layout.js";
import { dependencyState, taskLook } from "./states.js";
import { shorten } from "./format.js";

const TYPE_WORDS = { UNCONDITIONAL: "always", COMPLETION_ONLY: "when ended" };
const MAX_LABEL = 30; // characters of a condition on its edge

export class Scene {
  constructor(fold, constellationId, view) {
    this.fold = fold;
    this.ids = rowsOf(fold, "task", constellationId).map((task) => task.id);
    this.index = new Map(this.ids.map((id, i) => [id, i]));
    this.dependencies = rowsOf(fold, "dependency", constellationId).filter(
      (one) => this.index.has(one.upstream_id) && this.index.has(one.downstream_id),
    );
    this.edgeIndex = new Map(this.dependencies.map((one, i) => [one.id, i]));
    this.edges = this.dependencies.map((one) => [this.index.get(one.upstream_id), this.index.get(one.downstream_id)]);
    this.incident = this.ids.map(() => []);
    this.edges.forEach(([from, to], i) => {
      this.incident[from].push(i);
      this.incident[to].push(i);
    });
    this.layout = layout(this.ids.length, this.edges, view, (i) => this.label(i) !== "");
  }

  get count() {
    return this.ids.length;
  }

  task(i) {
    return this.fold.get("task", this.ids[i]);
  }

  dependency(i) {
    return this.fold.get("dependency", this.dependencies[i].id);
  }

  edgeState(i) {
    const [from, to] = this.edges[i];
    return dependencyState(this.dependency(i), this.task(from), this.task(to));
  }

  label(i) {
    const { type, condition } = this.dependency(i);
    return type === "CONDITIONAL" ? shorten(condition, MAX_LABEL) : (TYPE_WORDS[type] ?? "");
  }

  look(i) {
    return taskLook(this.task(i));
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

  // What an edge's curve stays within.
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
