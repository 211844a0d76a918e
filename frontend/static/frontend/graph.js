// The live graph: keeps a scene in step with the fold, chooses its renderer, and takes the reader around in it.

import { element } from "./dom.js";
import { CanvasGraph } from "./graph_canvas.js";
import { SvgGraph } from "./graph_svg.js";
import { attemptsMade, taskLook } from "./states.js";
import { Scene } from "./scene.js";
import { Viewport } from "./viewport.js";

export const SVG_LIMIT = 2000; // tasks; above, a canvas
const READABLE = 0.75; // scale at which a task that was looked for is shown
const TICK_MS = 100;

export class Graph {
  #ticked = 0;

  // `deviceName(task)` is where it runs or shall run, `onOpen(task row id)`, `now()` the server's time in ms.
  constructor(host, { fold, deviceName, onOpen, now }) {
    Object.assign(this, { host, fold, deviceName, onOpen, now, constellation: null, scene: null, focused: -1 });
    this.calls = {
      describe: (task) => this.describe(task),
      onOpen: (i) => {
        if (!this.viewport.dragging) onOpen(this.scene.ids[i]);
      },
      onFocus: (i) => this.#focus(i, false),
      now,
    };
    this.view = element("div", { class: "view" });
    this.viewport = new Viewport(this.view, (view) => this.renderer?.move(view));
    this.view.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#resized()).observe(this.view);
    host.prepend(this.view);
  }

  show(constellationId) {
    this.constellation = constellationId;
    this.viewport.moved = false;
    this.#rebuild();
  }

  // Takes up what a batch of events changed: the shape of the graph, or only how nodes and edges look.
  update(changes) {
    if (this.constellation === null) return;
    if (changes.restructured("task", "dependency")) this.#rebuild();
    else if (changes.has("task", "dependency")) this.#repaint(changes);
  }

  tick(time) {
    if (time - this.#ticked < TICK_MS || !this.scene) return;
    this.#ticked = time;
    this.renderer.tick(this.now());
  }

  fit() {
    if (this.scene) this.viewport.fit(this.scene.layout);
  }

  zoom(steps) {
    this.viewport.zoom(steps);
  }

  // Brings a task into view, focused.
  find(taskRow, grab = true) {
    const i = this.scene?.index.get(taskRow);
    if (i === undefined) return;
    this.viewport.show(this.scene.layout.x[i], this.scene.layout.y[i], READABLE);
    this.#focus(i, grab);
  }

  select(taskRow) {
    this.selected = taskRow;
    this.renderer?.select(this.scene.index.get(taskRow) ?? -1);
  }

  describe(task) {
    const look = taskLook(task);
    const title = task.name || task.task_id;
    const device = this.deviceName(task);
    const made = attemptsMade(task);
    const attempt = made > 1 || task.max_attempts > 1 ? `${made}/${task.max_attempts}` : "";
    const place = device ? `, on ${device}` : "";
    return { title, device, look, attempt, label: `${title}, ${look.word.toLowerCase()}${place}` };
  }

  #rebuild() {
    const kept = this.scene?.ids[this.focused];
    this.scene = new Scene(this.fold, this.constellation, this.viewport.size);
    this.host.dataset.tasks = this.scene.count;
    this.#choose();
    this.renderer.draw(this.scene);
    if (this.viewport.moved) this.viewport.onMove(this.viewport);
    else this.fit();
    this.#focus(this.scene.index.get(kept) ?? (this.scene.count ? 0 : -1), false);
    this.select(this.selected);
  }

  #choose() {
    const Kind = this.scene.count > SVG_LIMIT ? CanvasGraph : SvgGraph;
    if (this.renderer instanceof Kind) return;
    this.renderer?.remove();
    this.renderer = new Kind(this.view, this.calls);
  }

  #repaint(changes) {
    const edges = new Set();
    for (const id of changes.ids.task ?? []) {
      const i = this.scene.index.get(id);
      if (i === undefined) continue;
      this.renderer.paintNode(i);
      for (const edge of this.scene.incident[i]) edges.add(edge);
    }
    for (const id of changes.ids.dependency ?? []) if (this.scene.edgeIndex.has(id)) edges.add(this.scene.edgeIndex.get(id));
    for (const edge of edges) this.renderer.paintEdge(edge);
  }

  #resized() {
    if (!this.scene) return;
    if (this.viewport.moved) this.renderer.move(this.viewport);
    else this.fit();
  }

  #focus(i, grab) {
    this.focused = i;
    if (this.renderer) this.renderer.focus(i, grab);
  }

  #key(event) {
    if (!this.scene || this.focused < 0 || event.ctrlKey || event.metaKey) return;
    if (event.key.startsWith("Arrow")) this.find(this.scene.ids[this.scene.neighbour(this.focused, event.key)]);
    else if (event.key === "Enter" || event.key === " ") this.onOpen(this.scene.ids[this.focused]);
    else if (event.key === "+" || event.key === "=") this.zoom(1);
    else if (event.key === "-") this.zoom(-1);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }
}
