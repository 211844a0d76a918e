// The tab with the table: all tasks as rows, of which only those in sight are elements; filters, and commands to many at once.

import { element } from "../../dom.js";
import { between, clock, plural } from "../../format.js";
import { attemptsMade, lookOf, shapePath, TASK_STATES } from "../../states.js";
import { html, live, nothing, render, repeat } from "../../vendor/lit.js";
import { BulkTools } from "./bulk_tools.js";
import { EVERYTHING, NEEDS, writeFilter } from "../filters.js";
import { Pace } from "../pace.js";
import { RowMenu } from "./row_menu.js";
import { chooseRows, costsByTask, countRows, firstLine } from "./task_rows.js";

const ROW_PX = 28; // as in table.css
const BEYOND = 8; // rows drawn above and below those in sight
const DRAW_MS = 100; // is read, not watched
const ORDER_MS = 400; // rows that jump under the pointer cannot be clicked
const DRAFT_WORDS = { added: "To add", removed: "To remove", changed: "To change" };
const COLUMNS = {
  state: "State",
  name: "Name",
  task_id: "Task",
  device: "Device",
  attempt: "Attempt",
  started: "Started",
  took: "Took",
  cost: "Cost",
  error: "Error",
};

export class TableView {
  id = "table";
  title = "Table";
  #ids = []; // of the rows, in their order
  #places = new Map(); // id > place in #ids
  #marked = new Set(); // ids that a command is for
  #cursor = -1; // place of the row that keys are for
  #anchor = -1; // where a range began
  #costs = new Map();
  devices = []; // names of those that tasks run on, or shall
  total = 0; // tasks, whether they fit the filter or not
  #pace = new Pace({ isDue: true, pause: DRAW_MS });
  #isOrderDue = true;
  #areCostsDue = false; // to add them up looks at all calls
  #orderedAt = -Infinity;
  #drawn = []; // operations of the draft that rows are there for

  constructor(panel, { store, inPlace }) {
    Object.assign(this, { panel, store, inPlace, filter: EVERYTHING, sort: { column: "", down: false } });
    this.tools = element("div", { class: "toolbar table-tools" });
    this.head = element("div", { class: "table-head" });
    this.body = element("div", { class: "table-rows", role: "presentation" });
    this.spacer = element("div", { class: "table-all", role: "presentation" }, this.body);
    const grid = { class: "table-scroll", role: "grid", tabindex: 0, "aria-label": "Tasks", "aria-multiselectable": "true" };
    this.grid = element("div", grid, this.head, this.spacer);
    this.panel.append(this.tools, this.grid);
    this.bulk = new BulkTools({ store, redraw: () => this.draw(), choose: (ids) => this.#choose(ids) });
    this.menu = new RowMenu(this.panel, { onClosed: () => this.grid.focus({ preventScroll: true }) });
    inPlace.editing.listen(() => this.#drafted());
    this.grid.addEventListener("scroll", () => this.#soon(), { passive: true });
    this.grid.addEventListener("keydown", (event) => this.#key(event));
    this.body.addEventListener("click", (event) => this.#click(event));
    this.body.addEventListener("contextmenu", (event) => this.#openMenuAt(event));
  }

  opened() {
    this.filter = this.store.filter;
    const sort = this.store.address.get("sort") ?? "";
    this.sort = { column: sort.replace("-", ""), down: sort.startsWith("-") };
    this.#costs = costsByTask(this.store.fold);
    this.#order();
    this.draw();
    this.#reveal(this.store.selection);
  }

  #drafted() {
    this.#pace.isDue = true;
    const { operations } = this.inPlace.editing.draft;
    if (operations !== this.#drawn) this.#isOrderDue = true;
    this.#drawn = operations;
  }

  show() {
    this.#marked.clear();
    this.#cursor = this.#anchor = -1;
    this.bulk.forget();
    this.#isOrderDue = this.#pace.isDue = true;
  }

  update(changes) {
    if (changes.has("model_call")) this.#areCostsDue = this.#isOrderDue = true;
    if (!changes.has("task", "attempt", "device", "model_call")) return;
    const moves = this.sort.column || this.filter.state || this.filter.device || this.filter.text;
    if (changes.restructured("task") || moves) this.#isOrderDue = true;
    this.#pace.isDue = true;
  }

  select(selection) {
    this.#reveal(selection);
    this.#pace.isDue = true;
  }

  truthChanged() {
    this.#pace.isDue = true;
  }

  tick() {
    this.#pace.isDue = true; // clocks of tasks that run
  }

  frame(time) {
    if (this.#isOrderDue && time - this.#orderedAt >= ORDER_MS) this.#order(time);
    if (this.#pace.takes(time)) this.draw();
  }

  #soon() {
    this.scheduled ||= requestAnimationFrame(() => this.#drawRows());
  }

  #order(time = performance.now()) {
    this.#orderedAt = time;
    this.#isOrderDue = false;
    if (this.#areCostsDue) this.#costs = costsByTask(this.store.fold);
    this.#areCostsDue = false;
    const at = this.#ids[this.#cursor];
    this.#ids = chooseRows(this.store, this.inPlace.fold, this.filter, this.sort, this.#costs);
    const { total, devices } = countRows(this.store, this.inPlace.fold);
    Object.assign(this, { total, devices });
    this.#places = new Map(this.#ids.map((id, place) => [id, place]));
    this.#cursor = this.#places.get(at) ?? -1;
    for (const id of this.#marked) if (!this.store.fold.get("task", id)) this.#marked.delete(id);
    this.spacer.style.height = `${this.#ids.length * ROW_PX}px`;
    this.grid.setAttribute("aria-rowcount", this.#ids.length + 1);
    this.#pace.isDue = true;
  }

  draw() {
    this.#pace.isDue = false;
    this.#drawTools();
    this.#drawHead();
    this.#drawRows();
  }

  #drawTools() {
    const { filter } = this;
    const states = [...TASK_STATES, "SKIPPED"].map((state) => [state, lookOf("task", state).word]);
    const needs = Object.entries(NEEDS).map(([state, whose]) => [state, lookOf("stands", `needs_${whose}`).word]);
    const narrow = (key) => (event) => this.#narrow({ [key]: event.target.value });
    const choice = (value, word, chosen) => html`<option value=${value} ?selected=${value === chosen}>${word}</option>`;
    render(
      html`<select class="by-state" aria-label="State" .value=${live(filter.state)} @change=${narrow("state")}>
          ${choice("", "All states", filter.state)}${[...states, ...needs].map(([state, word]) => choice(state, word, filter.state))}
        </select>
        <select class="by-device" aria-label="Device" .value=${live(filter.device)} @change=${narrow("device")}>
          ${choice("", "All devices", filter.device)}${this.devices.map((name) => choice(name, name, filter.device))}
        </select>
        <input class="by-text" type="search" placeholder="Name, id or error" aria-label="Filter by name, id or error" .value=${live(filter.text)} @input=${narrow("text")} />
        <span class="note count">${this.#ids.length === this.total ? plural(this.total, "task") : `${this.#ids.length.toLocaleString("en")} of ${plural(this.total, "task")}`}</span>
        <span class="grow"></span>
        ${this.bulk.draw(this.#marked)}`,
      this.tools,
    );
  }

  #narrow(change) {
    this.#take({ ...this.filter, ...change });
    this.store.narrow(this.filter);
  }

  narrowed() {
    if (writeFilter(this.store.filter) !== writeFilter(this.filter)) this.#take(this.store.filter);
  }

  #take(filter) {
    this.filter = filter;
    this.grid.scrollTop = 0;
    this.#order();
    this.draw();
  }

  #sortBy(column) {
    const { sort } = this;
    if (sort.column !== column) this.sort = { column, down: false };
    else this.sort = sort.down ? { column: "", down: false } : { column, down: true };
    this.store.address.set({ sort: this.sort.column && `${this.sort.down ? "-" : ""}${this.sort.column}` });
    this.#order();
    this.draw();
  }

  #drawHead() {
    const all = this.#ids.length > 0 && this.#ids.every((id) => this.#marked.has(id) || !this.#isThere(id));
    const sorted = (column) => (this.sort.column !== column ? "none" : this.sort.down ? "descending" : "ascending");
    const arrow = (column) => ({ none: "", ascending: " ↑", descending: " ↓" })[sorted(column)];
    const cell = ([column, word]) =>
      html`<span role="columnheader" data-column=${column} aria-sort=${sorted(column)}><button class="quiet" @click=${() => this.#sortBy(column)}>${word}${arrow(column)}</button></span>`;
    const mark = html`<input type="checkbox" aria-label="Choose all that are shown" .checked=${live(all)} @change=${() => (all ? this.#choose([]) : this.#markAll())} />`;
    render(
      html`<div class="row" role="row" aria-rowindex="1">
        <span role="columnheader" data-column="mark">${this.#mayMark ? mark : html`<span class="unseen">Chosen</span>`}</span>${Object.entries(COLUMNS).map(cell)}
        <span role="columnheader" data-column="menu"><span class="unseen">Menu</span></span>
      </div>`,
      this.head,
    );
  }

  // Whether a row is more than a draft.
  #isThere(id) {
    return this.store.fold.get("task", id) !== undefined;
  }

  #open(id) {
    if (!this.inPlace.openDrafted(id)) this.store.select({ kind: "task", id });
  }

  get #mayMark() {
    return this.store.config.may_operate && this.store.isLive;
  }

  #drawRows() {
    cancelAnimationFrame(this.scheduled);
    this.scheduled = 0;
    const { scrollTop, clientHeight } = this.grid;
    const first = Math.max(0, Math.floor(scrollTop / ROW_PX) - BEYOND);
    const slots = Math.ceil(clientHeight / ROW_PX) + 2 * BEYOND;
    const last = Math.min(this.#ids.length, first + slots);
    // A row that comes into sight takes the element of one that went: elements are neither made nor moved among the others.
    const places = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i).sort((a, b) => (a % slots) - (b % slots));
    const empty = html`<p class="note none">${this.total ? "No task fits the filter." : "There are no tasks yet."}</p>`;
    render(this.#ids.length ? repeat(places, (place) => place % slots, (place) => this.#row(this.#ids[place], place)) : empty, this.body);
    for (const row of this.body.querySelectorAll(".row")) row.style.top = `${(row.getAttribute("aria-rowindex") - 2) * ROW_PX}px`;
    const active = this.body.querySelector("[data-cursor]");
    if (active) this.grid.setAttribute("aria-activedescendant", active.id);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  #row(id, place) {
    const task = this.inPlace.fold.get("task", id);
    if (!task) return nothing;
    const look = this.store.standings.taskLook(task);
    const drafted = task.draft ?? "";
    const more = html`<button type="button" tabindex="-1" aria-haspopup="menu" aria-label=${`What to do with ${task.task_id}`}>⋯</button>`;
    const error = firstLine(task);
    const cost = this.#costs.get(id);
    const isMarked = this.#marked.has(id);
    const name = task.name || task.task_id;
    const mark = this.#mayMark && this.#isThere(id) ? html`<input type="checkbox" tabindex="-1" aria-label=${`Choose ${task.task_id}`} .checked=${live(isMarked)} />` : nothing;
    // One template: a template for each cell takes several times as long.
    return html`<div class="row" role="row" id=${`row-${id}`} data-row=${id} data-tone=${look.tone} data-state=${task.state} data-draft=${drafted} aria-rowindex=${place + 2}
      aria-selected=${String(isMarked)} ?data-cursor=${place === this.#cursor} ?data-open=${this.store.isSelected("task", id)}>
      <span role="gridcell" data-column="mark">${mark}</span>
      <span role="gridcell" data-column="state"><svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${shapePath(look.shape)}></path></svg>${DRAFT_WORDS[drafted] ?? look.word}</span>
      <span role="gridcell" data-column="name" title=${name}>${name}</span>
      <span role="gridcell" data-column="task_id" title=${task.task_id}>${task.task_id}</span>
      <span role="gridcell" data-column="device">${this.store.placeOf(task)}</span>
      <span role="gridcell" data-column="attempt">${task.attempt ? `${attemptsMade(task)} of ${task.max_attempts}` : ""}</span>
      <span role="gridcell" data-column="started">${task.started_at ? clock(task.started_at) : ""}</span>
      <span role="gridcell" data-column="took">${between(task.started_at, task.ended_at, this.store.now())}</span>
      <span role="gridcell" data-column="cost">${cost === undefined ? "" : `$${cost.toPrecision(3)}`}</span>
      <span role="gridcell" data-column="error" title=${error || nothing}>${error}</span>
      <span role="gridcell" data-column="menu">${more}</span>
    </div>`;
  }

  #click(event) {
    const row = event.target.closest("[data-row]");
    if (!row) return;
    const id = Number(row.dataset.row);
    const place = this.#places.get(id);
    if (event.target.closest('[data-column="menu"] button')) return this.#openMenuAt(event);
    const isMark = event.target.matches("input") || event.target.closest('[data-column="mark"]');
    this.#cursor = place;
    if (this.#mayMark && event.shiftKey && this.#anchor >= 0) this.#markRange(this.#anchor, place);
    else if (this.#mayMark && (isMark || event.ctrlKey || event.metaKey)) this.#toggle(place);
    else if (!isMark) this.#open(id);
    this.draw();
  }

  #openMenuAt(event) {
    const row = event.target.closest("[data-row]");
    if (!row) return;
    event.preventDefault();
    this.#openMenu(this.#places.get(Number(row.dataset.row)), { x: event.clientX, y: event.clientY });
  }

  #openMenu(place, at) {
    this.#cursor = place;
    this.draw();
    const task = this.inPlace.fold.get("task", this.#ids[place]);
    const show = { name: this.#isThere(task.id) ? "Open the details" : "Change…", act: () => this.#open(task.id) };
    this.menu.open(task.name || task.task_id, [show, ...this.inPlace.choicesOf(task)], at);
  }

  // Beneath the row that keys are for.
  #openMenuByKey() {
    this.#scrollTo(this.#cursor);
    this.#drawRows();
    const { left, bottom } = this.body.querySelector("[data-cursor]").getBoundingClientRect();
    this.#openMenu(this.#cursor, { x: left + ROW_PX, y: bottom });
  }

  #toggle(place) {
    const id = this.#ids[place];
    if (!this.#marked.delete(id) && this.#isThere(id)) this.#marked.add(id);
    this.#anchor = place;
  }

  #markRange(from, to) {
    for (const id of this.#ids.slice(Math.min(from, to), Math.max(from, to) + 1)) if (this.#isThere(id)) this.#marked.add(id);
  }

  #markAll() {
    this.#choose(this.#ids.filter((id) => this.#isThere(id)));
  }

  #choose(ids) {
    this.#marked = new Set(ids);
    this.draw();
  }

  #key(event) {
    if (event.target !== this.grid) return;
    const page = Math.max(1, Math.floor(this.grid.clientHeight / ROW_PX) - 2);
    const last = this.#ids.length - 1;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -last - 1, End: last + 1 };
    if (event.key in steps) this.#goTo(Math.min(last, Math.max(0, this.#cursor + steps[event.key])), event.shiftKey);
    else if ((event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) && this.#cursor >= 0) this.#openMenuByKey();
    else if (event.key === "Enter" && this.#cursor >= 0) this.#open(this.#ids[this.#cursor]);
    else if (event.key === " " && this.#cursor >= 0 && this.#mayMark) this.#toggle(this.#cursor);
    else if (event.key === "a" && (event.ctrlKey || event.metaKey) && this.#mayMark) this.#markAll();
    else if (event.key === "Escape" && this.#marked.size) this.#choose([]);
    else return;
    event.preventDefault();
    this.draw();
  }

  #goTo(place, isRange) {
    if (place < 0) return;
    if (isRange && this.#mayMark) {
      if (this.#anchor < 0) this.#anchor = Math.max(0, this.#cursor);
      this.#markRange(this.#anchor, place);
    } else this.#anchor = place;
    this.#cursor = place;
    this.#scrollTo(place);
  }

  #scrollTo(place) {
    const { grid } = this;
    const top = place * ROW_PX;
    const room = grid.clientHeight - this.head.offsetHeight - ROW_PX;
    if (top < grid.scrollTop) grid.scrollTop = top;
    else if (top > grid.scrollTop + room) grid.scrollTop = top - room;
  }

  #reveal(selection) {
    const place = selection?.kind === "task" ? this.#places.get(selection.id) : undefined;
    if (place === undefined) return;
    this.#cursor = place;
    this.#scrollTo(place);
  }
}
