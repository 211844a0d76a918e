// Drawing a dependency on the graph: from a task, with Shift held or while "Connect" is pressed, to the task that shall wait for it.

import { svg } from "../../dom.js";

export class Connect {
  #line = null;
  #from = -1;

  // `graph` is the Graph on view; `onConnect(from, to)` gets lists of rows of tasks: several where an end is a box of parallel ones.
  constructor(graph, button, { editing, onConnect }) {
    Object.assign(this, { graph, button, editing, onConnect });
    button.addEventListener("click", () => this.#press(button.getAttribute("aria-pressed") !== "true"));
    editing.listen(() => this.#offer());
    const { view } = graph;
    view.addEventListener("pointerdown", (event) => this.#down(event), { capture: true });
    view.addEventListener("pointermove", (event) => this.#move(event), { capture: true });
    for (const end of ["pointerup", "pointercancel"]) view.addEventListener(end, (event) => this.#up(event), { capture: true });
    view.addEventListener("click", (event) => this.#click(event), { capture: true });
    this.#offer();
  }

  #offer() {
    this.button.hidden = !this.editing.isAllowed;
    if (this.button.hidden) this.#press(false);
  }

  #press(isPressed) {
    this.button.setAttribute("aria-pressed", String(isPressed));
    this.graph.host.toggleAttribute("data-connecting", isPressed);
  }

  get isPressed() {
    return this.button.getAttribute("aria-pressed") === "true";
  }

  #down(event) {
    this.justDrawn = false;
    if (event.button !== 0 || !this.editing.isAllowed || !(event.shiftKey || this.isPressed)) return;
    this.#from = this.graph.nodeAt(event);
    if (this.#from < 0) return;
    event.stopPropagation();
    event.preventDefault();
    const box = this.graph.view.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    this.#line = svg("line", { x1: x, y1: y, x2: x, y2: y });
    this.overlay = svg("svg", { class: "connecting", "aria-hidden": "true" }, this.#line);
    this.graph.view.append(this.overlay);
    this.graph.view.setPointerCapture(event.pointerId);
  }

  #move(event) {
    if (!this.#line) return;
    event.stopPropagation();
    const box = this.graph.view.getBoundingClientRect();
    this.#line.setAttribute("x2", event.clientX - box.left);
    this.#line.setAttribute("y2", event.clientY - box.top);
  }

  #up(event) {
    if (!this.#line) return;
    event.stopPropagation();
    this.overlay.remove();
    this.#line = null;
    const [from, to] = [this.#from, event.type === "pointerup" ? this.graph.nodeAt(event) : -1];
    this.justDrawn = true;
    if (to < 0 || to === from) return;
    this.onConnect(this.#tasksAt(from, false), this.#tasksAt(to, true));
    this.#press(false);
  }

  #tasksAt(node, isBefore) {
    const { scene } = this.graph;
    const joint = scene.joint(node, isBefore);
    return joint ? [joint] : scene.tasksOf(node);
  }

  // The press that drew a line opens nothing.
  #click(event) {
    if (!this.justDrawn) return;
    this.justDrawn = false;
    event.stopPropagation();
  }
}
