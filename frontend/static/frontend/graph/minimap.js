// All of a graph, small, with a frame around what is in view; a click or a drag in it moves the view. Only where the graph is
// larger than the view.

import { coloursAt } from "../colours.js";
import { element } from "../dom.js";
import { NODE } from "./layout.js";

const SIZE = { width: 190, height: 130 }; // pixels at most
const DRAW_MS = 250; // is glanced at: under a flood its nodes are drawn this often
const TONES = ["waiting", "pending", "running", "done", "failed", "cancelled", "held"];
const COLOURS = ["--surface", "--accent", ...TONES.map((tone) => `--${tone}`)];

export class Minimap {
  #timer = 0;
  #due = null; // numbers of nodes to be drawn over what is there; null: all anew

  // `viewport` is the one it moves.
  constructor(host, viewport) {
    this.viewport = viewport;
    this.picture = element("canvas", { "aria-hidden": "true" });
    this.frame = element("i", {});
    this.box = element("div", { class: "minimap", hidden: true, title: "The whole graph: click or drag to move the view" }, this.picture, this.frame);
    for (const kind of ["pointerdown", "pointermove"]) this.box.addEventListener(kind, (event) => this.#pointed(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.colours = null;
      this.changed();
    });
    host.append(this.box);
  }

  draw(scene) {
    const { width, height } = scene.layout;
    this.scene = scene;
    this.#due = null;
    this.box.dataset.nodes = 0; // drawn so far
    this.scale = Math.min(SIZE.width / width, SIZE.height / height);
    this.move();
  }

  // How nodes look has changed: of those, or of all.
  changed(nodes = null) {
    if (nodes === null) this.#due = null;
    else for (const i of nodes) this.#due?.add(i);
    if (!this.box.hidden) this.#timer ||= setTimeout(() => this.#paint(), DRAW_MS);
  }

  // The view has moved, or is of another size.
  move() {
    if (!this.scene?.count) return void (this.box.hidden = true);
    const { left, right, top, bottom } = this.viewport.seen;
    const { width, height } = this.scene.layout;
    const isWhole = left <= 0 && top <= 0 && right >= width && bottom >= height;
    if (this.box.hidden !== isWhole) this.box.hidden = isWhole;
    if (!isWhole && Number(this.box.dataset.nodes) !== this.scene.count) this.changed();
    else if (!isWhole && this.#due?.size) this.changed([]); // what changed behind a whole view
    const [x, y] = [Math.max(0, left) * this.scale, Math.max(0, top) * this.scale];
    const [w, h] = [Math.min(width, right) * this.scale - x, Math.min(height, bottom) * this.scale - y];
    this.frame.style.cssText = `transform: translate(${x}px, ${y}px); width: ${Math.max(4, w)}px; height: ${Math.max(4, h)}px`;
  }

  #paint() {
    this.#timer = 0;
    const { scene, scale, picture } = this;
    const ratio = devicePixelRatio || 1;
    const { x, y, width, height } = scene.layout;
    const due = this.#due ?? Array(scene.count).keys();
    if (this.#due === null) {
      picture.width = Math.ceil(width * scale * ratio);
      picture.height = Math.ceil(height * scale * ratio);
      picture.style.width = `${width * scale}px`;
    }
    const c = picture.getContext("2d");
    const [w, h] = [Math.max(1.5, NODE.width * scale * ratio), Math.max(1.5, NODE.height * scale * ratio)];
    this.colours ??= coloursAt(this.box, COLOURS);
    for (const i of due) {
      c.fillStyle = this.colours[`--${scene.look(i).tone}`];
      c.fillRect(x[i] * scale * ratio - w / 2, y[i] * scale * ratio - h / 2, w, h);
    }
    this.#due = new Set();
    this.box.dataset.nodes = scene.count;
  }

  #pointed(event) {
    if (!event.buttons) return;
    event.stopPropagation();
    if (event.type === "pointerdown") this.box.setPointerCapture(event.pointerId);
    const { left, top } = this.picture.getBoundingClientRect();
    this.viewport.look({ x: (event.clientX - left) / this.scale, y: (event.clientY - top) / this.scale });
  }
}
