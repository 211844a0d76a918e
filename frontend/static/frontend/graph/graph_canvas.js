// The graph on a canvas, for graphs too large for SVG: only what is in view is drawn, and text only where it is legible.
// What stays where it is keeps its pixels: of nodes that only look otherwise their own surroundings are drawn again.

import { coloursAt } from "../colours.js";
import { DETAIL } from "./graph_svg.js";
import { NODE } from "./layout.js";
import { element } from "../dom.js";
import { between } from "../format.js";
import { FIT, FONTS, TEXT_END, TEXT_X } from "./node_text.js";
import { shapePath } from "../states.js";

const CURVES_FROM = 0.3; // scale below which edges are straight lines
const EDGES_MS = 120; // from afar all edges are in view: they are drawn aside this often, and moved as a picture in between
const WHOLE_MS = 250; // near by, edges that look otherwise are drawn with all the rest at most this often
const MOVING_MS = 120; // after a move: until then the view is taken to move on
const MANY = 150; // nodes in view; as long as it moves so many are shown by their colour, and edges as a picture
const AROUND = 8; // what is drawn around a node: rings, and half of a line
const LARGEST_PART = 0.6; // of the surface; where more looks otherwise, all is drawn at once
const MOST_LOOKED_AT = 300_000; // nodes and edges, for what stands in the parts: more takes longer than to draw all
const EDGE_LOOKS = { open: ["--edge", []], held: ["--edge-held", []], never: ["--edge-never", [6, 4]] };
const DRAFT_COLOURS = { added: "--accent", removed: "--failed", changed: "--held", theirs: "--focus", gone: "--quiet" };
const TONES = ["waiting", "pending", "running", "done", "failed", "cancelled", "held"];

const COLOURS = ["--canvas", "--surface", "--text", "--quiet", "--edge", "--edge-held", "--edge-never", "--accent", "--focus", ...TONES.map((tone) => `--${tone}`)];

export class CanvasGraph {
  #isWhole = true; // all has to be drawn
  #nodesDue = new Set(); // numbers of nodes that look otherwise
  #wholeAt = -Infinity;
  #movedAt = -Infinity;
  #isRough = false; // what is there was drawn while the view moved

  constructor(host, { describe, onOpen, onFocus, onHover, now }) {
    Object.assign(this, { describe, onOpen, onFocus, now, focused: -1, selected: -1, view: { x: 0, y: 0, k: 1 }, emphasis: { nodes: null, edges: new Set(), critical: null } });
    this.surface = element("canvas", { class: "graph", tabindex: "0", role: "application", "aria-label": "Task graph" });
    this.context = this.surface.getContext("2d", { alpha: false });
    this.surface.addEventListener("click", (event) => this.#click(event));
    this.surface.addEventListener("pointermove", (event) => onHover(event.pointerType === "mouse" && !event.buttons ? this.#nodeAt(event) : -1));
    for (const end of ["pointerleave", "blur"]) this.surface.addEventListener(end, () => onHover(-1));
    for (const change of ["focus", "blur"]) this.surface.addEventListener(change, () => this.#dirty());
    this.resizing = new ResizeObserver(([{ contentRect }]) => this.#resized(contentRect));
    this.resizing.observe(this.surface);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.recolour = () => {
      this.colours = this.aside = null;
      this.#dirty();
    };
    this.scheme.addEventListener("change", this.recolour);
    host.append(this.surface);
  }

  draw(scene) {
    this.scene = scene;
    this.looks = Array(scene.count).fill(null); // of nodes, and the states of edges: null is to be looked up when it is drawn
    this.states = Array(scene.edges.length).fill(null);
    this.shapes = new Map();
    this.aside = this.sight = null;
    this.#dirty();
  }

  move(view) {
    this.view = { x: view.x, y: view.y, k: view.k };
    this.#movedAt = performance.now();
    this.#dirty();
  }

  paintNode(i) {
    this.looks[i] = null;
    this.#partDue(i);
  }

  // At once where nothing has moved for a moment; under a flood what the edges tell of comes first.
  paintEdge(i) {
    const isShown = !this.sight || this.sight.isShown[i] === 1;
    const state = isShown ? this.scene.edgeState(i) : null;
    if (state !== null && state === this.states[i]) return;
    this.states[i] = state;
    if (this.aside) this.aside.stale = true;
    if (isShown) this.#wholeSoon();
  }

  emphasize(emphasis) {
    this.emphasis = emphasis;
    this.#dirty();
  }

  // Clocks of what runs go on; at a moment of the past they stand.
  tick(now) {
    const goesOn = now !== this.ticked;
    this.ticked = now;
    if (goesOn && this.view.k >= DETAIL.mid) for (const i of this.sight?.nodes ?? []) if (this.#look(i).tone === "running") this.#partDue(i);
  }

  focus(i, grab) {
    this.focused = i;
    if (grab) this.surface.focus({ preventScroll: true });
    this.surface.setAttribute("aria-label", i < 0 ? "Task graph" : `Task graph, ${this.describe(this.scene.task(i)).label}`);
    this.#dirty();
  }

  select(i) {
    this.selected = i;
    this.#dirty();
  }

  remove() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.resizing.disconnect();
    this.scheme.removeEventListener("change", this.recolour);
    this.surface.remove();
  }

  // Known before it is asked for: to measure in the middle of a frame would lay out all that was drawn in it so far.
  #resized(box) {
    const [width, height] = [Math.round(box.width), Math.round(box.height)];
    if (this.size?.width === width && this.size.height === height) return;
    this.size = { width, height };
    this.#dirty();
  }

  #nodeAt(event) {
    const { x, y, k } = this.view;
    return this.scene ? this.scene.nodeAt({ x: (event.offsetX - x) / k, y: (event.offsetY - y) / k }) : -1;
  }

  #click(event) {
    const i = this.#nodeAt(event);
    if (i < 0) return;
    this.onFocus(i);
    this.onOpen(i);
  }

  #dirty() {
    this.#isWhole = true;
    this.#nextFrame();
  }

  #partDue(i) {
    this.#nodesDue.add(i);
    this.#nextFrame();
  }

  #wholeSoon() {
    const rest = this.#wholeAt + WHOLE_MS - performance.now();
    if (rest <= 0) this.#dirty();
    else this.timer ||= setTimeout(() => this.#again(), rest);
  }

  #nextFrame() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (this.scene) this.#paint();
      this.#nodesDue.clear();
    });
  }

  #paint() {
    const parts = this.#isWhole || !this.sight || !this.colours ? null : this.#partsDue();
    if (parts) this.#paintParts(parts);
    else this.#paintWhole();
  }

  #paintWhole() {
    const ratio = devicePixelRatio || 1;
    const { width, height } = (this.size ??= { width: this.surface.clientWidth, height: this.surface.clientHeight });
    if (!width || !height) return; // behind another tab
    if (this.surface.width !== width * ratio || this.surface.height !== height * ratio) {
      this.surface.width = width * ratio;
      this.surface.height = height * ratio;
    }
    clearTimeout(this.timer); // what was put off is drawn now
    this.timer = 0;
    this.#isWhole = false;
    this.#wholeAt = performance.now();
    this.colours ??= coloursAt(this.surface, COLOURS);
    const { x, y, k } = this.view;
    const c = this.context;
    const seen = { left: -x / k, top: -y / k, right: (width - x) / k, bottom: (height - y) / k };
    if (!this.sight || Object.entries(seen).some(([side, at]) => this.sight.seen[side] !== at)) this.sight = this.#inSight(seen);
    this.#isRough = k < DETAIL.mid && this.sight.nodes.length > MANY && performance.now() - this.#movedAt < MOVING_MS;
    if (this.#isRough) this.timer ||= setTimeout(() => this.#again(), MOVING_MS);
    if (this.#areEdgesAside) this.#keepAside(ratio);
    this.#layers(c, ratio, this.sight);
  }

  // The surroundings of nodes that look otherwise, in whole pixels of the surface; null where all of it is better drawn at once.
  #partsDue() {
    const ratio = devicePixelRatio || 1;
    const { x, y, k } = this.view;
    const { layout } = this.scene;
    const [w, h] = [NODE.width / 2 + AROUND, NODE.height / 2 + AROUND];
    const due = [...this.#nodesDue].filter((i) => this.sight.isNodeShown[i]);
    if (due.length * (this.sight.nodes.length + this.sight.edges.length) > MOST_LOOKED_AT) return null;
    let room = LARGEST_PART * this.surface.width * this.surface.height;
    const parts = [];
    for (const i of due) {
      const [left, top] = [Math.floor(ratio * ((layout.x[i] - w) * k + x)), Math.floor(ratio * ((layout.y[i] - h) * k + y))];
      const [right, bottom] = [Math.ceil(ratio * ((layout.x[i] + w) * k + x)), Math.ceil(ratio * ((layout.y[i] + h) * k + y))];
      room -= (right - left) * (bottom - top);
      if (room < 0) return null;
      parts.push([left, top, right - left, bottom - top]);
    }
    return parts;
  }

  #paintParts(parts) {
    const ratio = devicePixelRatio || 1;
    const { x, y, k } = this.view;
    const c = this.context;
    for (const [left, top, width, height] of parts) {
      const seen = { left: (left / ratio - x) / k, top: (top / ratio - y) / k, right: ((left + width) / ratio - x) / k, bottom: ((top + height) / ratio - y) / k };
      c.save();
      c.setTransform(1, 0, 0, 1, 0, 0);
      c.beginPath();
      c.rect(left, top, width, height);
      c.clip();
      this.#layers(c, ratio, this.#within(seen));
      c.restore();
    }
  }

  // One over the other, of `sight` what it names; a clip keeps the rest as it is.
  #layers(c, ratio, sight) {
    const { x, y, k } = this.view;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = this.colours["--canvas"];
    c.fillRect(0, 0, this.surface.width, this.surface.height);
    if (this.#areEdgesAside) this.#placeAside(c, ratio);
    c.setTransform(ratio * k, 0, 0, ratio * k, ratio * x, ratio * y);
    if (!this.#areEdgesAside) this.#edges(c, k, sight.edges);
    this.#strongEdges(c, k);
    this.#nodes(c, k, sight.nodes);
  }

  get #areEdgesAside() {
    return this.view.k < CURVES_FROM || this.#isRough;
  }

  // The numbers of nodes and edges in view. Work that goes on changes how they look, and neither which they are nor their order.
  #inSight(seen) {
    const { count, boxes } = this.scene;
    const [isNodeShown, isShown] = [new Uint8Array(count), new Uint8Array(boxes.length)];
    const nodes = [...Array(count).keys()].filter((i) => this.#isNodeIn(i, seen));
    const edges = [...boxes.keys()].filter((i) => isBoxIn(boxes[i], seen));
    for (const i of nodes) isNodeShown[i] = 1;
    for (const i of edges) isShown[i] = 1;
    return { seen, nodes, edges, isNodeShown, isShown };
  }

  // Those of them that stand in a part of the view.
  #within(part) {
    const { boxes } = this.scene;
    return { nodes: this.sight.nodes.filter((i) => this.#isNodeIn(i, part)), edges: this.sight.edges.filter((i) => isBoxIn(boxes[i], part)) };
  }

  #isNodeIn(i, { left, right, top, bottom }) {
    const { x, y } = this.scene.layout;
    const [w, h] = [NODE.width / 2, NODE.height / 2];
    return x[i] + w >= left && x[i] - w <= right && y[i] + h >= top && y[i] - h <= bottom;
  }

  // All edges as a picture, which follows the view at once and is drawn anew at most every EDGES_MS.
  #keepAside(ratio) {
    const { x, y, k } = this.view;
    const now = performance.now();
    const fits = this.aside && !this.aside.stale && this.aside.x === x && this.aside.y === y && this.aside.k === k;
    if (!this.aside || (!fits && now - this.aside.at >= EDGES_MS)) this.#drawAside(ratio, now);
    else if (!fits) this.timer ||= setTimeout(() => this.#again(), EDGES_MS);
  }

  #placeAside(c, ratio) {
    const { aside, view: { x, y, k } } = this;
    const scale = k / aside.k;
    c.setTransform(scale, 0, 0, scale, ratio * (x - aside.x * scale), ratio * (y - aside.y * scale));
    c.drawImage(aside.picture, 0, 0);
  }

  #drawAside(ratio, now) {
    const { x, y, k } = this.view;
    const picture = new OffscreenCanvas(this.surface.width, this.surface.height);
    const c = picture.getContext("2d");
    c.setTransform(ratio * k, 0, 0, ratio * k, ratio * x, ratio * y);
    this.#edges(c, k, this.sight.edges);
    this.aside = { picture, x, y, k, at: now, stale: false };
  }

  #again() {
    this.timer = 0;
    this.#dirty();
  }

  #look(i) {
    return (this.looks[i] ??= this.scene.look(i));
  }

  #state(i) {
    return (this.states[i] ??= this.scene.edgeState(i));
  }

  #edges(c, k, edges) {
    for (const [state, [colour, dash]] of Object.entries(EDGE_LOOKS)) {
      c.beginPath();
      for (const i of edges) if (this.#state(i) === state) this.#trace(c, i, k);
      c.strokeStyle = this.colours[colour];
      c.globalAlpha = k < DETAIL.dots ? 0.35 : 0.8;
      c.lineWidth = Math.max(1.4, 0.7 / k);
      c.setLineDash(k < CURVES_FROM ? [] : dash);
      c.stroke();
    }
    c.globalAlpha = 1;
    c.setLineDash([]);
  }

  // Those that are lit, and those of the marked chain, over the others.
  #strongEdges(c, k) {
    const drafts = this.scene.drafted.edges.map(([i, draft]) => [[i], DRAFT_COLOURS[draft]]);
    for (const [edges, colour] of [[this.emphasis.edges, "--accent"], [this.emphasis.critical?.edges ?? [], "--held"], ...drafts]) {
      c.beginPath();
      for (const i of edges) if (this.sight.isShown[i]) this.#trace(c, i, k);
      c.strokeStyle = this.colours[colour];
      c.lineWidth = Math.max(2.4, 1.4 / k);
      c.stroke();
    }
  }

  // Veils the nodes that are not lit.
  #standBack(c, nodes) {
    const { nodes: lit } = this.emphasis;
    if (lit === null) return;
    const { x, y } = this.scene.layout;
    c.beginPath();
    for (const i of nodes) if (!lit.has(i)) c.rect(x[i] - NODE.width / 2 - 2, y[i] - NODE.height / 2 - 2, NODE.width + 4, NODE.height + 4);
    c.globalAlpha = 0.7;
    c.fillStyle = this.colours["--canvas"];
    c.fill();
    c.globalAlpha = 1;
  }

  #trace(c, i, k) {
    const { x, y, bends, down } = this.scene.layout;
    const [from, to] = this.scene.edges[i];
    if (k < CURVES_FROM) {
      c.moveTo(x[from], y[from]);
      for (const bend of bends[i]) c.lineTo(bend.x, bend.y);
      c.lineTo(x[to], y[to]);
      return;
    }
    const points = this.scene.points(i);
    c.moveTo(points[0].x, points[0].y);
    for (let p = 1; p < points.length; p++) {
      const [a, b] = [points[p - 1], points[p]];
      if (p % 2 === 0) c.lineTo(b.x, b.y);
      else if (down) c.bezierCurveTo(a.x, (a.y + b.y) / 2, b.x, (a.y + b.y) / 2, b.x, b.y);
      else c.bezierCurveTo((a.x + b.x) / 2, a.y, (a.x + b.x) / 2, b.y, b.x, b.y);
    }
  }

  #nodes(c, k, nodes) {
    const groups = Object.fromEntries(TONES.map((tone) => [tone, []]));
    for (const i of nodes) groups[this.#look(i).tone].push(i);
    for (const tone of TONES) this.#group(c, groups[tone], this.colours[`--${tone}`], k);
    this.#standBack(c, nodes);
    for (const i of this.emphasis.critical?.nodes ?? []) this.#ring(c, i, this.colours["--held"], k);
    for (const [i, draft] of this.scene.drafted.nodes) this.#ring(c, i, this.colours[DRAFT_COLOURS[draft]], k);
    this.#ring(c, this.selected, this.colours["--accent"], k);
    if (this.surface.matches(":focus-visible")) this.#ring(c, this.focused, this.colours["--focus"], k);
  }

  #group(c, nodes, colour, k) {
    if (!nodes.length) return;
    const { x, y } = this.scene.layout;
    const box = (i) => [x[i] - NODE.width / 2, y[i] - NODE.height / 2, NODE.width, NODE.height];
    c.beginPath();
    for (const i of nodes) {
      if (k < DETAIL.far) c.rect(...box(i));
      else c.roundRect(...box(i), 10);
    }
    c.fillStyle = this.colours["--surface"];
    c.fill();
    c.globalAlpha = k < DETAIL.mid ? 0.6 : 0.14;
    c.fillStyle = colour;
    c.fill();
    c.globalAlpha = 1;
    if (k >= DETAIL.dots && !this.#isRough) {
      c.strokeStyle = colour;
      c.lineWidth = 1.4;
      c.stroke();
      for (const i of nodes) this.#inside(c, i, colour, k);
    }
  }

  #inside(c, i, colour, k) {
    const { x, y } = this.scene.layout;
    const near = k >= DETAIL.mid;
    const left = x[i] - NODE.width / 2;
    const top = y[i] - NODE.height / 2;
    const scale = k < DETAIL.far ? 2.6 : 1;
    c.save();
    c.translate(k < DETAIL.far ? x[i] - 8 * scale : left + 15, y[i] - 8 * scale);
    c.scale(scale, scale);
    c.strokeStyle = near ? colour : this.colours["--text"];
    c.lineWidth = 1.8;
    c.lineCap = c.lineJoin = "round";
    c.stroke(this.#shape(this.#look(i).shape));
    c.restore();
    if (k < DETAIL.far) return;
    this.#texts(c, this.scene.task(i), left + TEXT_X, left + NODE.width - TEXT_END, top, near);
  }

  #texts(c, task, left, right, top, near) {
    const described = this.describe(task);
    const { title, look, attempt, failure } = described;
    c.fillStyle = this.colours["--text"];
    c.font = near ? FONTS.title : FONTS.big;
    c.fillText(near ? FIT.title(title, attempt) : FIT.big(title), left, top + (near ? 21 : NODE.height / 2 + 8));
    if (!near) return;
    c.font = FONTS.state;
    c.fillStyle = this.colours[`--${look.tone}`];
    c.fillText(FIT.state(look.word), left, top + 54);
    c.font = FONTS.small;
    c.fillStyle = this.colours[failure ? "--failed" : "--quiet"];
    c.fillText(FIT.detail(task, described), left, top + 37);
    c.fillStyle = this.colours["--quiet"];
    c.textAlign = "right";
    c.fillText(between(task.started_at, task.ended_at, this.now()), right, top + 54);
    c.fillText(attempt, right, top + 21);
    c.textAlign = "left";
  }

  #shape(shape) {
    if (!this.shapes.has(shape)) this.shapes.set(shape, new Path2D(shapePath(shape)));
    return this.shapes.get(shape);
  }

  #ring(c, i, colour, k) {
    if (i < 0 || i >= this.scene.count) return;
    const { x, y } = this.scene.layout;
    c.beginPath();
    c.roundRect(x[i] - NODE.width / 2 - 4, y[i] - NODE.height / 2 - 4, NODE.width + 8, NODE.height + 8, 13);
    c.strokeStyle = colour;
    c.lineWidth = Math.max(2.5, 2.5 / k);
    c.stroke();
  }
}

function isBoxIn(box, { left, right, top, bottom }) {
  return box.right >= left && box.left <= right && box.bottom >= top && box.top <= bottom;
}
