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

  get size() {
    return { width: this.surface.clientWidth || 1, height: this.surface.clientHeight || 1 };
  }

  fit({ width, height }) {
    const { width: w, height: h } = this.size;
    const k = Math.min((w - 2 * FIT_MARGIN_PX) / width, (h - 2 * FIT_MARGIN_PX) / height, SCALE.fit);
    this.k = Math.max(k, SCALE.min);
    this.x = (w - width * this.k) / 2;
    this.y = (h - height * this.k) / 2;
    this.moved = false;
    this.onMove(this);
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
