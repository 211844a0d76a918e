// The graph as SVG: one element a node, so that every task can be focused, read aloud and styled.

import { NODE } from "./layout.js";
import { setText, svg } from "../dom.js";
import { between } from "../format.js";
import { FIT, TEXT_END, TEXT_X } from "./node_text.js";
import { shapePath } from "../states.js";

const HEAD = 5; // pixels of an arrow's head
const MAX_LABELS = 3000;
const SETTLE_MS = 150; // after which a moved picture is drawn sharp, and a scaled one anew in its detail
const CULL_FROM = 300; // tasks; smaller graphs are kept whole, for assistive technology and find-in-page
const CULL_MARGIN = 80; // pixels of the drawing
const DOTTED = { UNCONDITIONAL: true, COMPLETION_ONLY: true };
const DISC_X = 23; // pixels from a node's left edge to its sign
const MARK = 2.8; // the sign's scale from afar
export const DETAIL = { mid: 0.62, far: 0.3, dots: 0.13 }; // scales below which texts give way

export class SvgGraph {
  constructor(host, { describe, onOpen, onFocus, onHover }) {
    Object.assign(this, { describe, onOpen, onFocus, running: new Set() });
    this.links = svg("g", { class: "edges" });
    this.nodes = svg("g", { class: "nodes", tabindex: "-1" }); // what hears focus would be a stop of the keyboard by itself
    this.surface = svg("svg", { class: "graph", role: "group", "aria-label": "Task graph" }, head(), this.links, this.nodes);
    this.template = nodeTemplate();
    this.nodes.addEventListener("focusin", (event) => this.onFocus(indexOf(event)));
    this.nodes.addEventListener("click", (event) => this.onOpen(indexOf(event)));
    this.nodes.addEventListener("pointerover", (event) => onHover(event.pointerType === "mouse" ? indexOf(event) : -1));
    this.nodes.addEventListener("pointerout", (event) => {
      if (!event.relatedTarget?.closest?.(".node")) onHover(-1);
    });
    this.nodes.addEventListener("focusout", () => onHover(-1));
    host.append(this.surface);
  }

  draw(scene) {
    const known = new Set(this.scene?.ids);
    this.scene = scene;
    this.running.clear();
    this.items = scene.ids.map((id, i) => this.#node(i, known.size > 0 && !known.has(id)));
    this.paths = scene.edges.map((_, i) => svg("path", { d: pathOf(scene.points(i), scene.layout.down) }));
    this.labels = scene.edges.length > MAX_LABELS ? [] : scene.edges.map((_, i) => this.#label(i));
    this.boxes = scene.boxes;
    this.hiddenNodes = new Set();
    this.hiddenEdges = new Set();
    this.surface.setAttribute("width", scene.layout.width);
    this.surface.setAttribute("height", scene.layout.height);
    this.nodes.replaceChildren(...this.items);
    this.links.replaceChildren(...this.paths, ...this.labels.filter(Boolean));
    scene.ids.forEach((_, i) => this.paintNode(i));
    scene.edges.forEach((_, i) => this.paintEdge(i));
  }

  // As a transform of the whole picture, not inside it: a scale inside would lay out every text anew.
  move(view) {
    const { x, y, k } = view;
    this.surface.style.transform = `translate(${x}px, ${y}px) scale(${k})`;
    // While it is only shifted the picture is a layer of its own; a change of scale draws it anew.
    const shifted = k === this.scale;
    this.surface.classList.toggle("moving", shifted);
    const first = this.scale === undefined;
    this.scale = k;
    clearTimeout(this.sharpening);
    this.sharpening = setTimeout(() => this.surface.classList.remove("moving"), SETTLE_MS);
    if (shifted || first) this.#settle(view);
    else this.settling ||= setTimeout(() => this.#settle(view), SETTLE_MS);
  }

  // What is in view and how much of it is legible; while the scale changes this waits, as it touches every element.
  #settle({ x, y, k, size }) {
    clearTimeout(this.settling);
    this.settling = 0;
    this.#cull({ left: -x / k, top: -y / k, right: (size.width - x) / k, bottom: (size.height - y) / k });
    const detail = k < DETAIL.dots ? "dots" : k < DETAIL.far ? "far" : k < DETAIL.mid ? "mid" : "near";
    if (this.surface.dataset.detail !== detail) this.surface.dataset.detail = detail;
  }

  paintNode(i) {
    const task = this.scene.task(i);
    const item = this.items[i];
    const described = this.describe(task);
    const { title, look, attempt, label } = described;
    item.dataset.task = task.task_id;
    item.dataset.state = task.state;
    item.dataset.tone = look.tone;
    item.dataset.draft = task.draft ?? "";
    item.classList.toggle("folded", Boolean(task.box));
    item.setAttribute("aria-label", label);
    const { shape, mark, name, big, detail, state, tries } = item.parts;
    const { x, y } = this.scene.layout;
    shape.setAttribute("d", shapePath(look.shape, x[i] - NODE.width / 2 + DISC_X - 8, y[i] - 8));
    mark.setAttribute("d", shapePath(look.shape, x[i] - 8 * MARK, y[i] - 8 * MARK, MARK));
    setText(name, FIT.title(title, attempt));
    setText(big, FIT.big(title));
    setText(detail, FIT.detail(task, described));
    setText(state, FIT.state(look.word));
    setText(tries, attempt);
    if (task.state === "RUNNING") this.running.add(i);
    else this.running.delete(i);
    this.#time(i, Date.parse(task.started_at));
  }

  paintEdge(i) {
    const state = this.scene.edgeState(i);
    const { type, draft = "" } = this.scene.dependency(i);
    const [from, to] = this.scene.edges[i];
    this.paths[i].dataset.edge = `${this.scene.task(from).task_id} ${this.scene.task(to).task_id}`;
    for (const item of [this.paths[i], this.labels[i]]) {
      if (!item) continue;
      item.dataset.state = state;
      item.dataset.type = type;
      item.dataset.draft = draft;
    }
    if (draft || state === "never" || type in DOTTED) this.paths[i].setAttribute("marker-end", "url(#head)");
    else this.paths[i].removeAttribute("marker-end");
    const mark = { held: "✓ ", never: "✕ ", open: "" }[state];
    if (this.labels[i]) setText(this.labels[i].lastChild, mark + this.scene.label(i));
  }

  // See Graph: what is not lit stands back, and one chain is marked.
  emphasize({ nodes, edges, critical }) {
    this.items.forEach((item, i) => mark(item, { back: nodes !== null && !nodes.has(i), critical: critical?.nodes.has(i) ?? false }));
    this.paths.forEach((path, i) => mark(path, { back: nodes !== null && !edges.has(i), lit: edges.has(i), critical: critical?.edges.has(i) ?? false }));
  }

  tick(now) {
    for (const i of this.running) this.#time(i, now);
  }

  focus(i, grab) {
    this.focused?.setAttribute("tabindex", "-1");
    this.focused = this.items[i];
    this.focused?.setAttribute("tabindex", "0");
    if (grab) this.focused?.focus({ preventScroll: true });
  }

  select(i) {
    this.selected?.removeAttribute("data-selected");
    this.selected = this.items[i];
    this.selected?.setAttribute("data-selected", "");
  }

  remove() {
    clearTimeout(this.sharpening);
    clearTimeout(this.settling);
    this.surface.remove();
  }

  // Places are written into every part: a transform for each node would cost more than all else when the view moves.
  #node(i, fresh) {
    const item = this.template.cloneNode(true);
    const left = this.scene.layout.x[i] - NODE.width / 2;
    const top = this.scene.layout.y[i] - NODE.height / 2;
    for (const part of item.querySelectorAll("rect, circle, text")) {
      const [x, y] = part.tagName === "circle" ? ["cx", "cy"] : ["x", "y"];
      part.setAttribute(x, left + Number(part.getAttribute(x)));
      part.setAttribute(y, top + Number(part.getAttribute(y)));
    }
    const [, , , , shape, mark, texts] = item.children;
    const [name, big, detail, state, time, tries] = texts.children;
    item.parts = { shape, mark, name, big, detail, state, time, tries };
    item.index = i;
    if (fresh) item.classList.add("fresh");
    return item;
  }

  #label(i) {
    const text = this.scene.label(i);
    if (!text) return null;
    const { x, y } = this.scene.labelAt(i);
    const width = (text.length + 3) * 6.3 + 10;
    return svg(
      "g",
      { class: "label" },
      svg("rect", { x: x - width / 2, y: y - 9, width, height: 18, rx: 9 }),
      svg("text", { x, y: y + 3.5 }),
    );
  }

  // What is out of view is not drawn, but for the node that has the focus.
  #cull(seen) {
    if (!this.scene || this.scene.count <= CULL_FROM) return;
    const { x, y } = this.scene.layout;
    const [w, h] = [NODE.width / 2 + CULL_MARGIN, NODE.height / 2 + CULL_MARGIN];
    this.items.forEach((item, i) => {
      const out = x[i] + w < seen.left || x[i] - w > seen.right || y[i] + h < seen.top || y[i] - h > seen.bottom;
      toggle(this.hiddenNodes, i, out && item !== this.focused, item);
    });
    this.boxes.forEach((box, i) => {
      const out = box.right < seen.left || box.left > seen.right || box.bottom < seen.top || box.top > seen.bottom;
      toggle(this.hiddenEdges, i, out, this.paths[i], this.labels[i]);
    });
  }

  #time(i, now) {
    const task = this.scene.task(i);
    setText(this.items[i].parts.time, between(task.started_at, task.ended_at, now));
  }
}

// Touches only what differs: to write the same class costs the browser a look at its style.
function mark(item, classes) {
  for (const [name, isOn] of Object.entries(classes)) if (item.classList.contains(name) !== isOn) item.classList.toggle(name, isOn);
}

function toggle(hidden, i, out, ...items) {
  if (hidden.has(i) === out) return;
  if (out) hidden.add(i);
  else hidden.delete(i);
  for (const item of items) {
    if (!item) continue;
    if (out) item.setAttribute("display", "none");
    else item.removeAttribute("display");
  }
}

// -1 where the node under the pointer has just been drawn anew: the event is told of what it stood in.
function indexOf(event) {
  return event.target.closest(".node")?.index ?? -1;
}

function nodeTemplate() {
  const { width, height } = NODE;
  return svg(
    "g",
    { class: "node", role: "button", tabindex: "-1" },
    svg("rect", { class: "halo", x: -4, y: -4, width: width + 8, height: height + 8, rx: 13 }),
    svg("rect", { class: "box", x: 0, y: 0, width, height, rx: 10 }),
    svg("circle", { class: "disc", cx: DISC_X, cy: height / 2, r: 13 }),
    svg("circle", { class: "spin", cx: DISC_X, cy: height / 2, r: 13 }),
    svg("path", { class: "shape" }),
    svg("path", { class: "mark" }),
    svg(
      "g",
      { class: "texts" },
      svg("text", { class: "title", x: TEXT_X, y: 21 }),
      svg("text", { class: "big", x: TEXT_X, y: height / 2 + 8 }),
      svg("text", { class: "detail", x: TEXT_X, y: 37 }),
      svg("text", { class: "state", x: TEXT_X, y: 54 }),
      svg("text", { class: "time", x: width - TEXT_END, y: 54 }),
      svg("text", { class: "tries", x: width - TEXT_END, y: 21 }),
    ),
  );
}

// The head of a dashed edge: drawn as part of its path it would be dashed, too.
function head() {
  const arrow = svg("path", { d: `M0 0l${HEAD} ${HEAD}l-${HEAD} ${HEAD}`, fill: "none", stroke: "context-stroke", "stroke-width": 1.6 });
  const size = 2 * HEAD;
  const attributes = { id: "head", orient: "auto", refX: HEAD, refY: HEAD, markerWidth: size, markerHeight: size, markerUnits: "userSpaceOnUse" };
  return svg("defs", {}, svg("marker", attributes, arrow));
}

// A curve from layer to layer, straight where it passes one, with an open arrow's head.
function pathOf(points, down) {
  const [start] = points;
  const parts = [`M${start.x} ${start.y}`];
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    if (i % 2 === 0) parts.push(`L${b.x} ${b.y}`);
    else if (down) parts.push(`C${a.x} ${(a.y + b.y) / 2} ${b.x} ${(a.y + b.y) / 2} ${b.x} ${b.y}`);
    else parts.push(`C${(a.x + b.x) / 2} ${a.y} ${(a.x + b.x) / 2} ${b.y} ${b.x} ${b.y}`);
  }
  const { x, y } = points.at(-1);
  const [left, right] = down ? [`-${HEAD} -${HEAD}`, `${HEAD} -${HEAD}`] : [`-${HEAD} -${HEAD}`, `-${HEAD} ${HEAD}`];
  parts.push(`m${left}L${x} ${y}l${right}L${x} ${y}`);
  return parts.join("");
}
