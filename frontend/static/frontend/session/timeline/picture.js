// The timeline on a canvas: only what is in sight is drawn, and what is narrower than a pixel is drawn as one.

import { coloursAt } from "../../colours.js";
import { cutter } from "../../format.js";
import { machineLook } from "../../states.js";

export const LABELS_PX = 150;
export const RULER_PX = 24;
export const ROW_PX = 22;
const BAR_PX = 16;
const NAME_DOWN_PX = 1.5; // a name stands between the stripe of its calls above and that of the critical path below
const HALO_PX = 3;
const PARTS_FROM_PX = 5; // bars narrower than this show nothing inside
const TEXT_FROM_PX = 38;
const TICK_PX = 110; // between two marks of the ruler, about
const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5];
const TONES = ["waiting", "pending", "running", "done", "failed", "cancelled", "held"];
const COLOURS = ["--canvas", "--surface", "--sunken", "--text", "--quiet", "--line", "--accent", "--focus", ...TONES.map((tone) => `--${tone}`)];
const FONT = "11.5px system-ui, sans-serif";

export class TimelinePicture {
  #colours = null;
  #hatch = null;

  constructor(surface) {
    this.surface = surface;
    this.context = surface.getContext("2d", { alpha: false });
    this.cut = cutter(FONT);
    this.inSight = []; // bars that were drawn
    this.places = []; // [{bar or wait, x, y, width}] of what was drawn, for the pointer
  }

  recolour() {
    this.#colours = this.#hatch = null;
  }

  // `scene`: {lanes, from, until, top, now, fold, selected, cursor, hovered, path, states, loops}.
  draw(scene) {
    const ratio = devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.surface;
    if (!width || !height) return;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.surface.width !== wide || this.surface.height !== high) Object.assign(this.surface, { width: wide, height: high });
    this.#colours ??= coloursAt(this.surface, COLOURS);
    Object.assign(this, { scene, width, height, inSight: [], places: [] });
    this.scale = (width - LABELS_PX) / (scene.until - scene.from);
    const c = this.context;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = FONT;
    c.textBaseline = "middle";
    this.#fill("--surface", 0, 0, width, height);
    c.save();
    c.beginPath();
    c.rect(0, RULER_PX, width, height - RULER_PX);
    c.clip();
    this.#ticks((x) => this.#fill("--line", x, RULER_PX, 1, height));
    for (const lane of this.#lanesInSight()) this.#lane(lane);
    this.#moment();
    c.restore();
    this.#ruler();
  }

  #fill(colour, x, y, width, height, alpha = 1) {
    this.context.globalAlpha = alpha;
    this.context.fillStyle = this.#colours[colour];
    this.context.fillRect(x, y, width, height);
    this.context.globalAlpha = 1;
  }

  x(time) {
    return LABELS_PX + (time - this.scene.from) * this.scale;
  }

  #lanesInSight() {
    const { lanes, top } = this.scene;
    return lanes.filter((lane) => (lane.top + lane.rows) * ROW_PX >= top && lane.top * ROW_PX <= top + this.height);
  }

  #lane(lane) {
    const y = RULER_PX + lane.top * ROW_PX - this.scene.top;
    this.#fill("--line", 0, y, this.width, 1);
    this.context.save();
    this.context.beginPath();
    this.context.rect(LABELS_PX, RULER_PX, this.width - LABELS_PX, this.height);
    this.context.clip();
    for (const wait of [...lane.waits, ...this.#slotWaits(lane)]) this.#wait(wait, y);
    let drawnTo = []; // by row: the pixel up to which narrow bars have been drawn
    for (const bar of lane.bars) drawnTo = this.#bar(bar, y + bar.row * ROW_PX + (ROW_PX - BAR_PX) / 2, drawnTo);
    this.context.restore();
    this.context.fillStyle = this.#colours["--text"];
    const labelY = Math.min(Math.max(y, RULER_PX), y + (lane.rows - 1) * ROW_PX) + ROW_PX / 2;
    this.context.fillText(this.cut(lane.label, LABELS_PX - 22), 12, labelY);
  }

  #wait(wait, y) {
    const [x, end] = [this.x(wait.from), this.x(wait.until)];
    if (end < LABELS_PX || x > this.width) return;
    const [at, width] = [Math.max(x, LABELS_PX - 2), Math.max(1, Math.min(end, this.width) - Math.max(x, LABELS_PX - 2))];
    this.#hatched(at, y + (ROW_PX - BAR_PX) / 2, width, BAR_PX);
    this.places.push({ wait, x: at, y, width });
  }

  // Of a lane of one task: while it was ready and had no slot.
  #slotWaits(lane) {
    const own = this.scene.states.get(lane.key) ?? [];
    return own.filter(({ machine, state }) => machine === "task" && state === "PENDING").map((one) => ({ ...one, word: "was ready, and waited for a slot" }));
  }

  #hatched(x, y, width, height) {
    this.#hatch ??= this.context.createPattern(hatchOf(this.#colours["--held"]), "repeat");
    this.context.fillStyle = this.#hatch;
    this.context.fillRect(x, y, width, height);
  }

  #bar(bar, y, drawnTo) {
    const { now } = this.scene;
    const [x, end] = [this.x(bar.from), this.x(bar.until ?? now)];
    if (end < LABELS_PX || x > this.width || y + BAR_PX < RULER_PX || y > this.height) return drawnTo;
    this.inSight.push(bar);
    const at = Math.max(x, LABELS_PX - 2);
    const width = Math.max(1.5, Math.min(end, this.width + 2) - at);
    const isNarrow = width < 2;
    if (isNarrow && drawnTo[bar.row] > at && !this.#isMarked(bar)) return drawnTo; // would hide behind the one before
    drawnTo[bar.row] = at + 1;
    this.places.push({ bar, x: at, y: y - (ROW_PX - BAR_PX) / 2, width });
    const { look } = bar;
    this.#fill(`--${look.tone}`, at, y, width, BAR_PX, isNarrow ? 0.9 : 0.3);
    if (!isNarrow) this.#fill(`--${look.tone}`, at, y, 2, BAR_PX);
    if (width >= PARTS_FROM_PX) this.#inside(bar, y);
    if (this.scene.path.has(bar.task)) this.#fill("--accent", at, y + BAR_PX, width, 2);
    if (width >= TEXT_FROM_PX) this.#name(bar, at, y, width);
    this.#rings(bar, at, y, width);
    return drawnTo;
  }

  #isMarked({ attempt, task }) {
    return attempt === this.scene.cursor || attempt === this.scene.hovered || task === this.scene.selected;
  }

  // States of the agent and its loop as a band above, calls as a band below, waits hatched over both.
  #inside(bar, y) {
    for (const { machine, state, from, until } of this.#statesOf(bar)) this.#part(`--${machineLook(machine, state).tone}`, from, until, y, 4, 0.95);
    for (const { kind, from, until } of bar.parts) {
      if (kind === "model") this.#part("--pending", from, until, y + BAR_PX - 5, 5, 0.95);
      else if (kind === "tool") this.#part("--running", from, until, y + BAR_PX - 5, 5, 0.8);
      else if (kind === "phase") this.#part("--text", from, from + 1 / this.scale, y, BAR_PX, 0.6);
    }
    for (const { kind, from, until } of bar.parts) {
      if (kind !== "approval") continue;
      const [x, end] = [this.x(from), this.x(until ?? bar.until ?? this.scene.now)];
      if (end > LABELS_PX && x < this.width) this.#hatched(x, y, Math.max(1, end - x), BAR_PX);
    }
  }

  #part(colour, from, until, y, height, alpha) {
    const [x, end] = [this.x(from), this.x(until ?? this.scene.now)];
    if (end >= LABELS_PX && x <= this.width) this.#fill(colour, x, y, Math.max(0.75, end - x - 0.5), height, alpha);
  }

  // Of its tool loop, which says more; of the agent itself where there is none. The last is the one that it is in.
  #statesOf(bar) {
    const { states, loops, fold, now } = this.scene;
    const left = states.get(loops.get(bar.agent)) ?? states.get(bar.agent) ?? [];
    const row = fold.get("loop", loops.get(bar.agent)) ?? fold.get("agent", bar.agent);
    if (bar.until !== null || !row) return left;
    return [...left, { machine: row.machine ?? "tool_loop", state: row.state, from: Date.parse(row.entered_at), until: now }];
  }

  stateAt(bar, at) {
    return this.scene && this.#statesOf(bar).findLast?.((one) => one.from <= at && one.until >= at);
  }

  #name(bar, x, y, width) {
    const { context } = this;
    const task = this.scene.fold.get("task", bar.task);
    const name = `${task?.name || task?.task_id || ""}${bar.number > 1 ? ` #${bar.number}` : ""}`;
    const placed = [this.cut(name, Math.floor((width - 10) / 10) * 10), x + 6, y + BAR_PX / 2 + NAME_DOWN_PX];
    context.strokeStyle = this.#colours["--surface"]; // around the letters: stripes of a wait would run through them
    context.lineWidth = HALO_PX;
    context.lineJoin = "round";
    context.strokeText(...placed);
    context.fillStyle = this.#colours["--text"];
    context.fillText(...placed);
  }

  #rings({ attempt, task }, x, y, width) {
    const { cursor, selected, hovered } = this.scene;
    const isCursor = attempt === cursor && this.surface.matches(":focus-visible");
    const colour = isCursor ? "--focus" : task === selected ? "--accent" : attempt === hovered ? "--quiet" : null;
    if (!colour) return;
    this.context.strokeStyle = this.#colours[colour];
    this.context.lineWidth = 2;
    this.context.strokeRect(x - 1, y - 1, width + 2, BAR_PX + 2);
  }

  // Now, or the moment on view.
  #moment() {
    const x = this.x(this.scene.now);
    if (x >= LABELS_PX && x <= this.width) this.#fill("--accent", x, RULER_PX, 1.5, this.height);
  }

  #ticks(each) {
    const { from, until } = this.scene;
    const step = STEPS_MS.find((ms) => ms * this.scale >= TICK_PX) ?? Math.ceil(TICK_PX / this.scale / 864e5) * 864e5;
    const zone = new Date(from).getTimezoneOffset() * 60_000;
    for (let at = Math.ceil((from - zone) / step) * step + zone; at <= until; at += step) each(this.x(at), at, step);
  }

  #ruler() {
    const c = this.context;
    this.#fill("--sunken", 0, 0, this.width, RULER_PX);
    this.#fill("--line", 0, RULER_PX - 1, this.width, 1);
    c.fillStyle = this.#colours["--quiet"];
    this.#ticks((x, at, step) => {
      this.#fill("--line", x, 0, 1, RULER_PX);
      c.fillStyle = this.#colours["--quiet"];
      c.fillText(ruled(at, step), x + 5, RULER_PX / 2);
    });
  }

  barAt(x, y) {
    return this.#placeAt(x, y, "bar");
  }

  waitAt(x, y) {
    return this.#placeAt(x, y, "wait");
  }

  #placeAt(x, y, kind) {
    if (x < LABELS_PX || y < RULER_PX) return null;
    const fits = (one) => one[kind] && y >= one.y && y < one.y + ROW_PX && x >= one.x - 2 && x <= one.x + one.width + 2;
    return this.places.findLast(fits)?.[kind] ?? null;
  }
}

function ruled(at, step) {
  const date = new Date(at);
  const two = (number) => String(number).padStart(2, "0");
  if (step >= 864e5) return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const minutes = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (step >= 6e4) return minutes;
  const seconds = `${minutes}:${two(date.getSeconds())}`;
  return step >= 1000 ? seconds : `${seconds}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

function hatchOf(colour) {
  const tile = new OffscreenCanvas(7, 7);
  const c = tile.getContext("2d");
  c.strokeStyle = colour;
  c.lineWidth = 1.6;
  c.beginPath();
  for (const shift of [-7, 0, 7]) {
    c.moveTo(shift, 7);
    c.lineTo(shift + 7, 0);
  }
  c.stroke();
  return tile;
}
