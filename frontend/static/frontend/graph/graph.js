// The live graph: keeps a scene in step with the fold, chooses its renderer, and takes the reader around in it.

import { element } from "../dom.js";
import { CanvasGraph } from "./graph_canvas.js";
import { SvgGraph } from "./graph_svg.js";
import { TASK_ENDED, attemptsMade, taskLook } from "../states.js";
import { criticalPath, relatedTo } from "./emphasis.js";
import { Minimap } from "./minimap.js";
import { Scene } from "./scene.js";
import { Viewport } from "./viewport.js";

export const SVG_LIMIT = 600; // tasks; above, a canvas
const READABLE = 0.75; // scale at which a task that was looked for is shown
const LEGIBLE = 0.5; // scale below which a graph does not open: names are no longer read
const TICK_MS = 100;
const SLICE_MS = 30; // of finding places, after which the page does something else
const REST = 2; // times as long as a large shape took to draw: so long the next one waits, while what is to be drawn comes in

export class Graph {
  #ticked = 0;
  #drawn = { rows: null, seq: 0 }; // the rows that the scene was made from, and their head
  #hasMoved = false; // a task began or ended since the view last followed
  #whole = false; // the reader wants to see all of it, however small
  #hovered = -1;
  #isCritical = false;
  #wanted = null;
  #lit = null; // numbers of the nodes that a filter lets stand out
  #folded = null; // ids of tasks that are shown by themselves while the others fold, or null: nothing folds
  #large = null; // the last scene on a canvas: to find its places again would take long
  #coming = null; // the scene whose places are being found
  #sought = null; // the task to be shown once it is there: [task row, whether it takes the focus]
  #isDue = false; // the shape has changed since it was drawn
  #restsUntil = 0;

  // `deviceName(task)` is where it runs or shall run, `onOpen(task row id)`, `now()` the server's time in ms, `lookOf(task)` its look.
  constructor(host, { fold, deviceName, onOpen, now, lookOf = taskLook }) {
    Object.assign(this, { host, fold, deviceName, onOpen, now, lookOf, constellation: null, scene: null, focused: -1 });
    this.calls = {
      describe: (task) => this.describe(task),
      onOpen: (i) => {
        if (i >= 0 && !this.viewport.dragging) this.#open(i);
      },
      onFocus: (i) => this.#focus(i, false),
      onHover: (i) => this.#hover(i),
      now,
    };
    this.view = element("div", { class: "view" });
    this.viewport = new Viewport(this.view, (view) => this.#moved(view));
    this.minimap = new Minimap(host, this.viewport);
    this.view.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(([{ contentRect }]) => this.#resized(contentRect)).observe(this.view);
    host.prepend(this.view);
  }

  show(constellationId) {
    this.constellation = constellationId;
    this.viewport.moved = this.#whole = false;
    this.#folded &&= new Set();
    if (!this.#isLarge) return this.#rebuild();
    if (this.#takeKnown()) return;
    this.#coming = null; // a picture of another one
    this.#restsUntil = 0;
    this.#drawn = { rows: null, seq: 0 };
    this.#isDue = true;
  }

  // Draws anew what changed while nobody looked, and leaves the reader where they were.
  refresh(constellationId) {
    if (constellationId !== this.constellation) this.show(constellationId);
    else if (constellationId !== null) this.#rebuild();
  }

  // Takes up what a batch of events changed: the shape of the graph, or only how nodes and edges look.
  update(changes) {
    if (this.constellation === null) return;
    const isReshaped = changes.restructured("task", "dependency") || (changes.isJump && this.scene?.foldsOtherwise);
    if (isReshaped) this.#reshape();
    else if (this.scene && changes.has("task", "dependency")) this.#repaint(changes);
    if (changes.isJump && this.#hasMoved && this.scene) this.#followWhatRuns(); // before it is drawn, not once more behind it
  }

  // Once a frame: however many batches came for it, the shape is drawn once.
  tick(time) {
    if (this.#isDue && !this.#coming && time >= this.#restsUntil) this.#rebuildOnce();
    if (time - this.#ticked < TICK_MS || !this.scene) return;
    this.#ticked = time;
    this.renderer.tick(this.now());
    if (this.#hasMoved && this.#isCritical) this.#emphasize();
    if (this.#hasMoved) this.#followWhatRuns();
  }

  // Shows all of it, however small.
  fit() {
    this.#whole = true;
    if (this.scene) this.viewport.fit(this.scene.layout);
  }

  // Whether the view goes where tasks run; moving it by hand ends that.
  get isFollowing() {
    return !this.viewport.moved && !this.#whole;
  }

  follow() {
    this.viewport.moved = this.#whole = false;
    if (this.scene) this.#arrange();
  }

  // Lets tasks stand back for which `wanted(task)` does not hold; null for none.
  filter(wanted) {
    this.#wanted = wanted;
    this.#emphasize();
  }

  get isCritical() {
    return this.#isCritical;
  }

  get isFolding() {
    return this.#folded !== null;
  }

  // Draws rows of tasks and completed ones of a layer as one box each, or every task by itself.
  setFolding(isFolding) {
    this.#folded = isFolding ? new Set() : null;
    if (this.constellation !== null) this.#rebuild();
  }

  // Marks the chain of tasks that took longest so far, or no longer.
  markCritical(isCritical) {
    this.#isCritical = isCritical;
    this.#emphasize();
  }

  zoom(steps) {
    this.viewport.zoom(steps);
  }

  // Brings a task into view, focused.
  find(taskRow, grab = true) {
    if (this.#isDue && !this.#coming) this.#rebuildOnce();
    this.#sought = this.#coming ? [taskRow, grab] : null;
    const i = this.scene?.index.get(taskRow);
    if (i === undefined) return;
    if (this.scene.groups[i] && !this.#coming) this.#unfold(i, taskRow, grab);
    else this.#show(i, grab);
  }

  #show(i, grab) {
    this.viewport.show(this.scene.layout.x[i], this.scene.layout.y[i], READABLE);
    this.#focus(i, grab);
  }

  // The number of the node under the pointer, or -1.
  nodeAt({ clientX, clientY }) {
    const { x, y, k } = this.viewport;
    const { left, top } = this.view.getBoundingClientRect();
    return this.scene ? this.scene.nodeAt({ x: (clientX - left - x) / k, y: (clientY - top - y) / k }) : -1;
  }

  select(taskRow) {
    this.selected = taskRow;
    this.renderer?.select(this.scene.index.get(taskRow) ?? -1);
  }

  describe(task) {
    const look = task.box?.look ?? (task.told ? { ...this.lookOf(task), word: task.told } : this.lookOf(task));
    const title = `${task.draft === "added" ? "+ " : ""}${task.name || task.task_id}`;
    if (task.box) return { title, device: "", look, attempt: "", failure: "", label: `${title}, ${task.task_id}: ${task.box.words}` };
    const device = this.deviceName(task);
    const made = attemptsMade(task);
    const attempt = made > 1 || task.max_attempts > 1 ? `${made}/${task.max_attempts}` : "";
    const place = device ? `, on ${device}` : "";
    const failure = task.state === "FAILED" ? firstLine(task.error || task.reason) : "";
    const label = `${title}, ${look.word.toLowerCase()}${place}${failure ? `: ${failure}` : ""}`;
    return { title, device, look, attempt, failure, label };
  }

  // Draws a new shape in the next frame; the first one at once, as somebody waits for it, unless that takes long itself.
  #reshape() {
    this.#isDue = true;
    if (!this.scene?.total && !this.#coming && !this.#isLarge) this.#rebuildOnce();
  }

  get #isLarge() {
    return this.fold.table("task").size > SVG_LIMIT;
  }

  // A snapshot tells of its constellation and of its rows: they are one picture.
  #rebuildOnce() {
    const { rows, seq } = this.#drawn;
    this.#isDue = false;
    if (rows !== this.fold.rows || seq !== this.fold.seq) this.#rebuild();
  }

  #rebuild() {
    if (this.#takeKnown()) return;
    const began = performance.now();
    this.#isDue = false;
    const scene = new Scene(this.fold, this.constellation, { lookOf: this.lookOf, folded: this.#folded });
    this.#drawn = { rows: this.fold.rows, seq: this.fold.seq };
    this.#coming = scene;
    const steps = scene.placeIn(this.viewport.size);
    if (scene.count > SVG_LIMIT) return this.#placeInSlices(scene, steps, began);
    while (!steps.next().done);
    this.#take(scene);
  }

  // Takes up the last large scene again, where its tasks and dependencies are those that are there now.
  #takeKnown() {
    if (this.#large?.fold !== this.fold || !this.#large.fits(this.constellation, this.#folded)) return false;
    this.#isDue = false;
    this.#drawn = { rows: this.fold.rows, seq: this.fold.seq };
    this.#large.forget();
    this.#take(this.#large);
    return true;
  }

  // The page goes on meanwhile, with the picture from before; a scene that another took the place of is let go.
  async #placeInSlices(scene, steps, began) {
    let sliced = -Infinity; // to number its nodes was a slice of its own
    do {
      if (performance.now() - sliced < SLICE_MS) continue;
      await new Promise((resolve) => setTimeout(resolve));
      if (this.#coming !== scene) return;
      sliced = performance.now();
    } while (!steps.next().done);
    await new Promise((resolve) => setTimeout(resolve));
    if (this.#coming !== scene) return;
    this.#take(scene);
    this.#restsUntil = performance.now() + REST * (performance.now() - began);
  }

  #take(scene) {
    const kept = this.scene?.ids[this.focused];
    this.scene = scene;
    this.#coming = null;
    if (scene.count > SVG_LIMIT) this.#large = scene;
    Object.assign(this.host.dataset, { tasks: this.scene.total, nodes: this.scene.count });
    this.#choose();
    this.renderer.draw(this.scene);
    this.minimap.draw(this.scene);
    this.#hovered = -1;
    this.#emphasize();
    if (this.viewport.moved) this.viewport.onMove(this.viewport);
    else this.#arrange();
    this.#focus(this.scene.index.get(kept) ?? (this.scene.count ? 0 : -1), false);
    this.select(this.selected);
    if (this.#sought) this.find(...this.#sought);
  }

  #choose() {
    const Kind = this.scene.count > SVG_LIMIT ? CanvasGraph : SvgGraph;
    if (this.renderer instanceof Kind) return;
    this.renderer?.remove();
    this.renderer = new Kind(this.view, this.calls);
  }

  #repaint(changes) {
    const { index, edgeIndex, incident } = this.scene;
    const nodes = new Set();
    const isEdgeDue = new Uint8Array(this.scene.edges.length); // flags: a set of ten thousand numbers takes longer than their drawing
    for (const id of changes.ids.task ?? []) if (index.has(id)) nodes.add(index.get(id));
    if (nodes.size) this.minimap.changed(nodes);
    for (const i of nodes) {
      this.scene.touch(i);
      this.renderer.paintNode(i);
      for (const edge of incident[i]) isEdgeDue[edge] = 1;
    }
    for (const id of changes.ids.dependency ?? []) if (edgeIndex.has(id)) isEdgeDue[edgeIndex.get(id)] = 1;
    for (let edge = isEdgeDue.indexOf(1); edge >= 0; edge = isEdgeDue.indexOf(1, edge + 1)) this.renderer.paintEdge(edge);
    this.#hasMoved = true;
    if (this.#isLitAnew(nodes)) this.#emphasize();
  }

  // Whether what a filter lets stand out has changed with these nodes.
  #isLitAnew(nodes) {
    if (!this.#wanted || this.#hovered >= 0) return false;
    return [...nodes].some((i) => this.#lit.has(i) !== this.scene.tasksOf(i).some(this.#wanted));
  }

  #open(i) {
    const { groups } = this.scene;
    if (groups[i]) this.#unfold(i, groups[i].ids[0], false);
    else this.onOpen(this.scene.ids[i]);
  }

  // Shows the tasks of a box by themselves, and of them the one that was looked for.
  #unfold(i, sought, grab) {
    for (const id of this.scene.groups[i].ids) this.#folded.add(id);
    this.#rebuild();
    this.find(sought, grab);
  }

  // All of it, or where that would be too small to read: what runs.
  #arrange() {
    const { layout } = this.scene;
    if (this.#whole || this.viewport.scaleOf(layout) >= LEGIBLE) return this.viewport.fit(layout);
    const i = this.#current();
    this.viewport.centre({ x: layout.x[i], y: layout.y[i] }, READABLE, layout);
  }

  // Where the reader would look: at what runs, else at the first that has not ended, else at the beginning.
  #current() {
    let open = -1;
    for (let i = 0; i < this.scene.count; i++) {
      const { state } = this.scene.task(i);
      if (state === "RUNNING") return i;
      if (open < 0 && !TASK_ENDED.has(state)) open = i;
    }
    return Math.max(0, open);
  }

  #followWhatRuns() {
    this.#hasMoved = false;
    if (!this.isFollowing || this.viewport.scaleOf(this.scene.layout) >= LEGIBLE) return;
    const { x, y } = this.scene.layout;
    const { left, right, top, bottom } = this.viewport.seen;
    const isSeen = (i) => x[i] > left && x[i] < right && y[i] > top && y[i] < bottom;
    if (!this.scene.ids.some((_, i) => isSeen(i) && this.scene.task(i).state === "RUNNING")) this.#arrange();
  }

  #hover(i) {
    if (i === this.#hovered) return;
    this.#hovered = i;
    this.#emphasize();
  }

  // What is lit (the others stand back) and which chain is marked: {nodes or null, edges, critical: {nodes, edges} or null}.
  #emphasize() {
    if (!this.scene) return;
    const { edges, incident, ids } = this.scene;
    const critical = this.#isCritical ? criticalPath(ids.length, edges, incident, (i) => this.#took(i)) : null;
    if (this.#hovered >= 0) return this.renderer.emphasize({ ...relatedTo(this.#hovered, edges, incident), critical });
    const nodes = this.#wanted ? new Set([...ids.keys()].filter((i) => this.scene.tasksOf(i).some(this.#wanted))) : null;
    this.#lit = nodes;
    this.renderer.emphasize({ nodes, edges: new Set(), critical });
  }

  // Milliseconds, one at least: of tasks that have not begun the chain with the most of them is the longest.
  #took(i) {
    const { started_at: start, ended_at: end } = this.scene.task(i);
    const least = this.scene.groups[i]?.kind === "row" ? this.scene.groups[i].ids.length : 1;
    return start ? Math.max(least, (end ? Date.parse(end) : this.now()) - Date.parse(start)) : least;
  }

  #moved(view) {
    this.renderer?.move(view);
    this.minimap.move();
  }

  #resized(size) {
    this.viewport.resized(size);
    if (!this.scene) return;
    if (this.viewport.moved) this.#moved(this.viewport);
    else this.#arrange();
  }

  #focus(i, grab) {
    this.focused = i;
    if (this.renderer) this.renderer.focus(i, grab);
  }

  #step(key) {
    const next = this.scene.neighbour(this.focused, key);
    this.#show(next, true);
    this.#hover(next);
  }

  #key(event) {
    if (!this.scene || this.focused < 0 || event.ctrlKey || event.metaKey) return;
    if (event.key.startsWith("Arrow")) this.#step(event.key);
    else if (event.key === "Enter" || event.key === " ") this.#open(this.focused);
    else if (event.key === "+" || event.key === "=") this.zoom(1);
    else if (event.key === "-") this.zoom(-1);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }
}

function firstLine(text) {
  return (text ?? "").trim().split("\n", 1)[0];
}
