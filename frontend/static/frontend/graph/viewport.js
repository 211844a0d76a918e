// Pan and zoom of one surface: pointer, wheel, pinch and buttons. It knows nothing of what it moves.

const SCALE = { min: 0.02, max: 2.5, fit: 1.1 };
const WHEEL_SPEED = 0.0016;
const STEP = 1.3;
const FIT_MARGIN_PX = 28;
const DRAG_PX = 4; // a press that moves less is a click

export class Viewport {
  #pointers = new Map();
  #pressed = null;

  // `onMove({x, y, k})` after every change; a point p of the drawing stands at p * k + (x, y) on the surface.
  constructor(surface, onMove) {
    Object.assign(this, { surface, onMove, x: 0, y: 0, k: 1, moved: false, dragging: false });
    surface.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    surface.addEventListener("pointerdown", (event) => this.#down(event));
    surface.addEventListener("pointermove", (event) => this.#move(event));
    for (const end of ["pointerup", "pointercancel"]) surface.addEventListener(end, (event) => this.#up(event));
  }

  // Measured when the surface changes its size and not when asked: that would lay out all that was just drawn.
  get size() {
    return (this.measured ??= { width: this.surface.clientWidth || 1, height: this.surface.clientHeight || 1 });
  }

  // The surface has another size now; one that is hidden has none and keeps its last.
  resized({ width, height }) {
    if (width && height) this.measured = { width, height };
  }

  // The scale at which all of a drawing is in view.
  scaleOf({ width, height }) {
    const { width: w, height: h } = this.size;
    return Math.min((w - 2 * FIT_MARGIN_PX) / width, (h - 2 * FIT_MARGIN_PX) / height, SCALE.fit);
  }

  fit(drawing) {
    const { width: w, height: h } = this.size;
    this.k = Math.max(this.scaleOf(drawing), SCALE.min);
    this.x = (w - drawing.width * this.k) / 2;
    this.y = (h - drawing.height * this.k) / 2;
    this.moved = false;
    this.onMove(this);
  }

  // Brings a point to the middle at scale `k`; what is beyond the drawing's ends stays out of view where it can.
  centre(point, k, drawing) {
    const { width: w, height: h } = this.size;
    this.k = k;
    this.x = within(w / 2 - point.x * k, w, drawing.width * k);
    this.y = within(h / 2 - point.y * k, h, drawing.height * k);
    this.onMove(this);
  }

  // Brings a point to the middle, as a move by hand.
  look(point) {
    const { width, height } = this.size;
    this.x = width / 2 - point.x * this.k;
    this.y = height / 2 - point.y * this.k;
    this.#changed();
  }

  // The part of the drawing that is in view.
  get seen() {
    const { x, y, k } = this;
    const { width, height } = this.size;
    return { left: -x / k, top: -y / k, right: (width - x) / k, bottom: (height - y) / k };
  }

  zoom(steps) {
    const { width, height } = this.size;
    this.#scale(STEP ** steps, width / 2, height / 2);
  }

  // Brings a point into view, at `k` at least.
  show(x, y, k = this.k, margin = 60) {
    const { width, height } = this.size;
    const sx = x * this.k + this.x;
    const sy = y * this.k + this.y;
    const inside = sx > margin && sy > margin && sx < width - margin && sy < height - margin;
    if (inside && this.k >= k) return;
    this.k = Math.max(this.k, k);
    this.x = width / 2 - x * this.k;
    this.y = height / 2 - y * this.k;
    this.#changed();
  }

  #changed() {
    this.moved = true;
    this.onMove(this);
  }

  #scale(factor, sx, sy) {
    const k = Math.min(SCALE.max, Math.max(SCALE.min, this.k * factor));
    this.x = sx - ((sx - this.x) * k) / this.k;
    this.y = sy - ((sy - this.y) * k) / this.k;
    this.k = k;
    this.#changed();
  }

  #wheel(event) {
    event.preventDefault();
    const box = this.surface.getBoundingClientRect();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.#scale(Math.exp(-event.deltaY * lines * WHEEL_SPEED), event.clientX - box.left, event.clientY - box.top);
  }

  #down(event) {
    if (event.button !== 0) return;
    this.#pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (this.#pointers.size === 1) this.#pressed = { x: event.clientX, y: event.clientY };
    this.dragging = false;
  }

  #move(event) {
    const last = this.#pointers.get(event.pointerId);
    if (!last) return;
    const now = { x: event.clientX, y: event.clientY };
    if (!this.dragging && Math.hypot(now.x - this.#pressed.x, now.y - this.#pressed.y) < DRAG_PX) return;
    if (!this.dragging) this.surface.setPointerCapture(event.pointerId);
    this.dragging = true;
    if (this.#pointers.size === 2) this.#pinch(event.pointerId, last, now);
    this.#pointers.set(event.pointerId, now);
    const share = this.#pointers.size;
    this.x += (now.x - last.x) / share;
    this.y += (now.y - last.y) / share;
    this.#changed();
  }

  #pinch(id, last, now) {
    const other = [...this.#pointers].find(([one]) => one !== id)[1];
    const box = this.surface.getBoundingClientRect();
    const spread = (point) => Math.max(1, Math.hypot(point.x - other.x, point.y - other.y));
    this.#scale(spread(now) / spread(last), (now.x + other.x) / 2 - box.left, (now.y + other.y) / 2 - box.top);
  }

  #up(event) {
    this.#pointers.delete(event.pointerId);
  }
}

function within(offset, room, length) {
  if (length + 2 * FIT_MARGIN_PX <= room) return (room - length) / 2;
  return Math.min(FIT_MARGIN_PX, Math.max(room - length - FIT_MARGIN_PX, offset));
}
