// The tab with the timeline: who did what when, on a canvas. Attempts are bars in lanes; inside them states, calls and waits.

import * as api from "../../api.js";
import { element } from "../../dom.js";
import { clock, duration } from "../../format.js";
import { machineLook } from "../../states.js";
import { html, live, nothing, render } from "../../vendor/lit.js";
import { collectBars, criticalPath, GROUPINGS, layLanes, readStates } from "./bars.js";
import { TimelinePicture, LABELS_PX, RULER_PX, ROW_PX } from "./picture.js";

const GATHER_MS = 250; // is read, not watched: under a flood the bars are collected this often
const STATES_MS = 400; // the view stands still this long before states are asked for
const STATES_BARS = 400; // more bars in sight than these are too small for their states
const ZOOM = 1.25;
const SHORTEST_MS = 5;

export class TimelineView {
  id = "timeline";
  title = "Timeline";
  #isOpen = false;
  #isDue = true;
  #gatheredAt = 0;
  #grouping = "device";
  #view = null; // {from, until}: milliseconds in sight; null: all of it
  #top = 0; // pixels scrolled down
  #cursor = null; // attempt that keys are for
  #hovered = null;
  #drag = null;
  #timer = 0;
  #asked = "";
  #states = new Map();
  #note = "";

  constructor(panel, { store }) {
    Object.assign(this, { panel, store, bars: new Map(), lanes: [], rows: 0, path: new Set(), order: [] });
    this.tools = element("div", { class: "toolbar timeline-tools" });
    const about = { class: "timeline", tabindex: 0, role: "application", "aria-label": "Timeline", "aria-describedby": "timeline-help" };
    this.surface = element("canvas", about);
    this.tip = element("div", { class: "timeline-tip", hidden: true });
    this.empty = element("p", { class: "note timeline-empty" }, "Nothing has begun yet.");
    this.help = element("p", { class: "unseen", id: "timeline-help" }, "Arrows up and down go from attempt to attempt, left and right move in time, plus and minus zoom, 0 shows all, Enter opens the task. The table has the same as text.");
    this.box = element("div", { class: "timeline-box" }, this.surface, this.tip, this.empty, this.help);
    panel.append(this.tools, this.box);
    this.picture = new TimelinePicture(this.surface);
    this.#listen();
  }

  opened() {
    this.#isOpen = true;
    this.#gather();
    this.draw();
    this.#askForStates();
  }

  closed() {
    this.#isOpen = false;
    clearTimeout(this.#timer);
  }

  show() {
    this.#view = null;
    this.#top = 0;
    this.#cursor = null;
    this.#asked = "";
    this.#states = new Map();
    this.#isDue = true;
  }

  update(changes) {
    if (changes.has("attempt", "task", "evidence", "model_call", "phase", "approval", "dependency")) this.#isDue = true;
  }

  select() {
    this.draw();
  }

  truthChanged() {
    this.#asked = "";
    this.#states = new Map();
    this.#isDue = true;
    this.#later();
  }

  frame(time) {
    if (this.#isDue && time - this.#gatheredAt >= GATHER_MS) {
      this.#gather(time);
      this.draw();
      this.#later();
    } else if (this.#runs && this.store.isLive && time - (this.paintedAt ?? 0) > 100) this.draw();
  }

  get #runs() {
    return this.order.some((bar) => bar.until === null);
  }

  #gather(time = performance.now()) {
    this.#gatheredAt = time;
    this.#isDue = false;
    const found = collectBars(this.store);
    const laid = layLanes(this.store, found, this.#grouping);
    Object.assign(this, { bars: found.bars, lanes: laid.lanes, rows: laid.rows, path: criticalPath(this.store) });
    this.order = this.lanes.flatMap((lane) => lane.bars);
    this.empty.hidden = this.order.length > 0;
    this.surface.dataset.bars = this.order.length;
    this.surface.dataset.lanes = this.lanes.length;
    this.surface.dataset.critical = this.path.size;
  }

  // All that there is: from the first start until the last end, or now.
  get #whole() {
    const now = this.store.now();
    let [from, until] = [Infinity, -Infinity];
    for (const bar of this.order) {
      from = Math.min(from, bar.from);
      until = Math.max(until, bar.until ?? now);
    }
    if (from > until) [from, until] = [now - 1000, now];
    const room = Math.max(20, (until - from) * 0.02);
    return { from: from - room, until: until + room };
  }

  get #shown() {
    return this.#view ?? this.#whole;
  }

  draw() {
    if (!this.#isOpen) return;
    this.paintedAt = performance.now();
    this.#drawTools();
    const { from, until } = this.#shown;
    const most = Math.max(0, this.rows * ROW_PX + RULER_PX - this.surface.clientHeight);
    this.#top = Math.min(this.#top, most);
    const selected = this.store.selection?.kind === "task" ? this.store.selection.id : null;
    const about = { selected, cursor: this.#cursor, hovered: this.#hovered, path: this.path, states: this.#states, loops: this.#loops() };
    this.picture.draw({ lanes: this.lanes, from, until, top: this.#top, now: this.store.now(), fold: this.store.fold, ...about });
    this.surface.dataset.from = Math.round(from);
    this.surface.dataset.until = Math.round(until);
  }

  #loops() {
    return new Map([...this.store.fold.table("loop").values()].map((loop) => [loop.agent_id, loop.id]));
  }

  #drawTools() {
    const choose = (event) => {
      this.#grouping = event.target.value;
      this.#top = 0;
      this.#gather();
      this.draw();
    };
    const option = ([key, word]) => html`<option value=${key} ?selected=${key === this.#grouping}>${word}</option>`;
    const key = (name, word) => html`<span class="key" data-key=${name}><i></i>${word}</span>`;
    render(
      html`<label class="note">Lanes <select class="grouping" .value=${live(this.#grouping)} @change=${choose}>${Object.entries(GROUPINGS).map(option)}</select></label>
        <div class="zoom" role="group" aria-label="Zoom in time">
          <button aria-label="Show a longer time" @click=${() => this.#zoom(1 / ZOOM)}>−</button>
          <button aria-label="Fit: show all of the time" @click=${() => this.#look(null)}>Fit</button>
          <button aria-label="Show a shorter time" @click=${() => this.#zoom(ZOOM)}>+</button>
        </div>
        <span class="keys">${key("wait", "waits")}${key("model", "model")}${key("tool", "tool")}${key("critical", "critical path")}</span>
        ${this.#note ? html`<span class="note" role="status">${this.#note}</span>` : nothing}
        <span class="grow"></span>
        <button class="link" @click=${() => document.getElementById("tab-table").click()}>As a table</button>`,
      this.tools,
    );
  }

  #look(view) {
    this.#view = view && { from: view.from, until: Math.max(view.until, view.from + SHORTEST_MS) };
    this.draw();
    this.#later();
  }

  // `x`: the pixel that stays where it is.
  #zoom(factor, x = (LABELS_PX + this.surface.clientWidth) / 2) {
    const { from, until } = this.#shown;
    const at = this.#timeAt(x);
    this.#look({ from: at - (at - from) / factor, until: at + (until - at) / factor });
  }

  #pan(px) {
    const { from, until } = this.#shown;
    const ms = (px * (until - from)) / Math.max(1, this.surface.clientWidth - LABELS_PX);
    this.#look({ from: from + ms, until: until + ms });
  }

  #timeAt(x) {
    const { from, until } = this.#shown;
    return from + ((x - LABELS_PX) / Math.max(1, this.surface.clientWidth - LABELS_PX)) * (until - from);
  }

  #scrollTo(top) {
    this.#top = Math.max(0, top);
    this.draw();
    this.#later();
  }

  #later() {
    clearTimeout(this.#timer);
    if (this.#isOpen) this.#timer = setTimeout(() => this.#askForStates(), STATES_MS);
  }

  // What machines went through in the time in sight, where the bars are wide enough to show it.
  async #askForStates() {
    const inSight = this.picture.inSight;
    if (!this.#isOpen || !inSight.length) return;
    if (inSight.length > STATES_BARS) return this.#say("States of machines are drawn when fewer attempts are in sight.");
    const last = this.store.isLive ? Infinity : Date.parse(this.store.moment.at);
    const from = new Date(Math.min(...inSight.map((bar) => bar.from))).toISOString();
    const until = new Date(Math.min(last, Math.max(...inSight.map((bar) => bar.until ?? this.store.now())) + 1)).toISOString();
    const asked = `${from} ${until} ${inSight.length} ${this.store.fold.seq}`;
    if (asked === this.#asked) return;
    this.#asked = asked;
    try {
      const found = await api.sessionTimeline(this.store.config.session, from, until);
      if (this.#asked !== asked) return;
      for (const [subject, states] of readStates(found)) this.#states.set(subject, states);
      this.surface.dataset.states = this.#states.size;
      this.#say(found.truncated ? "Too many states for this time: look at a shorter one." : "");
    } catch (error) {
      this.#say(`States cannot be read: ${error.message}`);
    }
    this.draw();
  }

  #say(text) {
    this.#note = text;
    this.#drawTools();
  }

  // Where a bar is in sight, go nowhere; else scroll to it.
  #goTo(bar) {
    this.#cursor = bar.attempt;
    const lane = this.lanes.find((one) => one.bars.includes(bar));
    const y = (lane.top + bar.row) * ROW_PX;
    const room = this.surface.clientHeight - RULER_PX - ROW_PX;
    if (y < this.#top) this.#top = y;
    else if (y > this.#top + room) this.#top = y - room;
    const { from, until } = this.#shown;
    if (bar.from < from || bar.from > until) this.#view = { from: bar.from - (until - from) / 4, until: bar.from + ((until - from) * 3) / 4 };
    this.surface.setAttribute("aria-label", `Timeline, ${this.#words(bar).join(", ")}`);
    this.draw();
    this.#later();
  }

  #words(bar) {
    const { store } = this;
    const task = store.fold.get("task", bar.task);
    const took = duration((bar.until ?? store.now()) - bar.from);
    return [
      `${task?.name || task?.task_id}, attempt ${bar.number}`,
      `${bar.look.word} · ${clock(new Date(bar.from).toISOString())} · ${took}`,
      [store.deviceName(bar.device), this.path.has(bar.task) ? "on the critical path" : ""].filter(Boolean).join(" · "),
    ].filter(Boolean);
  }

  #tell(x, y) {
    const bar = this.picture.barAt(x, y);
    const at = this.#timeAt(x);
    const part = bar?.parts.findLast?.((one) => one.from <= at && (one.until ?? Infinity) >= at);
    const state = bar && this.picture.stateAt(bar, at);
    const wait = bar ? null : this.picture.waitAt(x, y);
    const words = bar ? [...this.#words(bar), part?.word, state && machineLook(state.machine, state.state).word].filter(Boolean) : wait ? [wait.word, duration(wait.until - wait.from)] : [];
    this.tip.hidden = !words.length;
    if (words.length) {
      this.tip.replaceChildren(...words.map((word) => element("span", {}, word)));
      this.tip.style.left = `${Math.min(x + 14, this.surface.clientWidth - this.tip.offsetWidth - 4)}px`;
      this.tip.style.top = `${Math.min(y + 16, this.surface.clientHeight - this.tip.offsetHeight - 4)}px`;
    }
    if (this.#hovered === (bar?.attempt ?? null)) return;
    this.#hovered = bar?.attempt ?? null;
    this.draw();
  }

  #listen() {
    const { surface } = this;
    new ResizeObserver(() => this.draw()).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.picture.recolour();
      this.draw();
    });
    surface.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    surface.addEventListener("keydown", (event) => this.#key(event));
    for (const change of ["focus", "blur"]) surface.addEventListener(change, () => this.draw());
    surface.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.#drag = { x: event.offsetX, y: event.offsetY, top: this.#top, view: this.#shown, moved: false };
      surface.setPointerCapture(event.pointerId);
    });
    surface.addEventListener("pointermove", (event) => (this.#drag ? this.#dragged(event) : this.#tell(event.offsetX, event.offsetY)));
    surface.addEventListener("pointerup", (event) => {
      const drag = this.#drag;
      this.#drag = null;
      if (drag && !drag.moved) this.#click(event.offsetX, event.offsetY);
    });
    surface.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
      this.#hovered = null;
    });
  }

  #click(x, y) {
    const bar = this.picture.barAt(x, y);
    if (!bar) return;
    this.#cursor = bar.attempt;
    this.store.select({ kind: "task", id: bar.task });
  }

  #dragged(event) {
    const { x, y, top, view, moved } = this.#drag;
    const [dx, dy] = [event.offsetX - x, event.offsetY - y];
    if (!moved && Math.hypot(dx, dy) < 4) return;
    this.#drag.moved = true;
    this.tip.hidden = true;
    const ms = (dx * (view.until - view.from)) / Math.max(1, this.surface.clientWidth - LABELS_PX);
    this.#top = Math.max(0, top - dy);
    this.#look({ from: view.from - ms, until: view.until - ms });
  }

  #wheel(event) {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey || event.offsetY < RULER_PX) this.#zoom(event.deltaY < 0 ? ZOOM : 1 / ZOOM, event.offsetX);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.#pan(event.deltaX || event.deltaY);
    else this.#scrollTo(this.#top + event.deltaY);
  }

  #key(event) {
    const at = this.order.findIndex((bar) => bar.attempt === this.#cursor);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.order.length - 1 }[event.key];
    if (next !== undefined) {
      const bar = this.order[Math.min(this.order.length - 1, Math.max(0, next))];
      if (bar) this.#goTo(bar);
    } else if (event.key === "ArrowLeft") this.#pan(-80);
    else if (event.key === "ArrowRight") this.#pan(80);
    else if (event.key === "+" || event.key === "=") this.#zoom(ZOOM);
    else if (event.key === "-") this.#zoom(1 / ZOOM);
    else if (event.key === "0") this.#look(null);
    else if (event.key === "Enter" && at >= 0) this.store.select({ kind: "task", id: this.order[at].task });
    else return;
    event.preventDefault();
  }
}
