// The tab with the log: all that all attempts printed, in the order in which it came, of which only what is in sight is drawn.
//
// It begins at the end and follows it. Attempts that run are asked every FOLLOW_MS, and at once when one begins or ends;
// where none runs nobody asks.

import * as api from "../../api.js";
import { element } from "../../dom.js";
import { fileSize, plural } from "../../format.js";
import { html, live, nothing, render, repeat } from "../../vendor/lit.js";
import { LogLines } from "./log_lines.js";

const LINE_PX = 18; // as in log.css
const BEYOND = 12; // lines drawn above and below those in sight
const FOLLOW_MS = 1000;
const PIECES = 200; // of one answer
const PAGES_TO_A_HIT = 40; // read at most to come to a place that was found
const TYPING_MS = 300; // before what is typed is searched for
const AT_END_PX = 6;
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export class LogView {
  id = "log";
  title = "Log";
  #lines = new LogLines();
  #scope = {}; // {task} or {attempt}: rows
  #isOpen = false;
  #follows = true;
  #reading = 0; // number of the read that counts
  #isReading = false;
  #hasMoreBefore = false;
  #timer = 0;
  #search = { text: "", hits: null, next: null };
  #marked = -1; // the line that was searched for
  #trouble = "";

  constructor(panel, { store }) {
    Object.assign(this, { panel, store });
    this.tools = element("div", { class: "toolbar log-tools" });
    this.found = element("ol", { class: "log-hits", "aria-label": "Places found", hidden: true });
    this.body = element("div", { class: "log-lines" });
    this.spacer = element("div", { class: "log-all" }, this.body);
    this.scroll = element("div", { class: "log-scroll", tabindex: 0, role: "log", "aria-live": "off", "aria-label": "What all attempts printed" }, this.spacer);
    panel.append(this.tools, this.found, this.scroll);
    this.scroll.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.scroll.addEventListener("keydown", (event) => this.#key(event));
    this.body.addEventListener("click", (event) => {
      const link = event.target.closest("button[data-task]");
      if (link) store.select({ kind: "task", id: Number(link.dataset.task) });
    });
  }

  opened() {
    this.#isOpen = true;
    this.draw();
    this.#readEnd();
  }

  closed() {
    this.#isOpen = false;
    clearTimeout(this.#timer);
  }

  show() {
    this.draw();
  }

  // The stream says when an attempt begins or ends: that is when something may have come.
  update(changes) {
    if (!changes.has("attempt")) return;
    this.draw();
    if (this.#follows) this.#soon(0);
  }

  select() {
    this.draw();
  }

  truthChanged() {
    this.draw();
  }

  get #runs() {
    for (const attempt of this.store.present.table("attempt").values()) if (!attempt.ended_at) return true;
    return false;
  }

  // Forgets what is there and reads the end.
  async #readEnd() {
    this.#lines.clear();
    this.#marked = -1;
    this.#follows = true;
    const page = await this.#read({});
    if (!page) return;
    this.#hasMoreBefore = page.more;
    this.#lines.append(page);
    this.#drawLines();
    this.#toEnd();
    this.#soon(FOLLOW_MS);
  }

  // A page, or null where another read has taken its place, or it failed.
  async #read(query) {
    const number = ++this.#reading;
    this.#isReading = true;
    try {
      const page = await api.sessionLog(this.store.config.session, { limit: PIECES, ...this.#scope, ...query });
      this.#trouble = "";
      return number === this.#reading ? page : null;
    } catch (error) {
      this.#trouble = `The log cannot be read: ${error.message}`;
      return null;
    } finally {
      if (number === this.#reading) this.#isReading = false;
      this.draw();
    }
  }

  #soon(wait) {
    clearTimeout(this.#timer);
    if (this.#isOpen) this.#timer = setTimeout(() => this.#followOn(), wait);
  }

  async #followOn() {
    if (!this.#isOpen || !this.#follows) return;
    if (this.#isReading || document.hidden) return this.#soon(FOLLOW_MS);
    const wasRunning = this.#runs;
    const page = await this.#read({ after: this.#lines.last ?? 0 });
    if (page) this.#took(page);
    if (page?.more) this.#soon(0);
    else if (wasRunning || !page) this.#soon(FOLLOW_MS);
  }

  #took(page) {
    const dropped = this.#lines.append(page);
    if (dropped) this.#hasMoreBefore = true;
    if (this.#marked >= 0) this.#marked -= dropped;
    this.#drawLines();
    if (this.#follows) this.#toEnd();
  }

  async #readEarlier() {
    if (this.#isReading || !this.#hasMoreBefore || this.#lines.first === null) return;
    const page = await this.#read({ before: this.#lines.first });
    if (!page) return;
    this.#hasMoreBefore = page.more;
    const added = this.#lines.prepend(page);
    if (this.#marked >= 0) this.#marked += added;
    this.#drawLines();
    this.scroll.scrollTop += added * LINE_PX;
  }

  #scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroll;
    const atEnd = scrollTop + clientHeight >= scrollHeight - AT_END_PX;
    if (this.#follows && !atEnd && scrollTop < this.lastTop) this.#follow(false);
    this.lastTop = scrollTop;
    if (scrollTop < clientHeight) this.#readEarlier();
    this.scheduled ||= requestAnimationFrame(() => {
      this.scheduled = 0;
      this.#drawLines();
    });
  }

  #follow(follows) {
    this.#follows = follows;
    if (follows && this.#lines.dropped.after) this.#readEnd();
    else if (follows) {
      this.#toEnd();
      this.#soon(0);
    }
    this.draw();
  }

  #toEnd() {
    this.scroll.scrollTop = this.scroll.scrollHeight;
    this.lastTop = this.scroll.scrollTop;
  }

  #narrow(scope) {
    this.#scope = scope;
    this.draw();
    this.#readEnd();
  }

  draw() {
    const { store } = this;
    const selected = store.selection?.kind === "task" ? store.fold.get("task", store.selection.id) : null;
    const attempts = selected ? [...store.fold.table("attempt").values()].filter((one) => one.task_id === selected.id).sort((a, b) => a.number - b.number) : [];
    const value = this.#scope.attempt ? `attempt ${this.#scope.attempt}` : this.#scope.task ? `task ${this.#scope.task}` : "";
    const choose = (event) => {
      const [key, id] = event.target.value.split(" ");
      this.#narrow(key ? { [key]: Number(id) } : {});
    };
    const choice = (one, word) => html`<option value=${one} ?selected=${one === value}>${word}</option>`;
    const outside = value && ![`task ${selected?.id}`, ...attempts.map(({ id }) => `attempt ${id}`)].includes(value);
    const query = new URLSearchParams(this.#scope).toString();
    render(
      html`<select class="log-scope" aria-label="What is shown" .value=${live(value)} @change=${choose}>
          ${choice("", "All tasks")} ${outside ? choice(value, this.#nameOf(this.#scope)) : nothing}
          ${selected ? choice(`task ${selected.id}`, `Only ${selected.name || selected.task_id}`) : nothing}
          ${attempts.map((one) => choice(`attempt ${one.id}`, `Only its attempt ${one.number}`))}
        </select>
        <input class="log-search" type="search" placeholder="Search all output" aria-label="Search all output" @input=${(event) => this.#type(event.target.value)} />
        ${selected ? nothing : html`<span class="note">Choose a task to see it alone.</span>`}
        <span class="note trouble" role="status">${this.#said()}</span>
        <span class="grow"></span>
        <label class="note"><input type="checkbox" class="log-follow" .checked=${live(this.#follows)} @change=${(event) => this.#follow(event.target.checked)} /> Follow</label>
        <a class="log-download" href=${`/api/sessions/${store.config.session}/log/download/${query ? `?${query}` : ""}`} download>Download all</a>`,
      this.tools,
    );
  }

  #said() {
    if (this.#trouble) return this.#trouble;
    if (!this.store.isLive) return "What was printed is no part of the moment on view: this is the log as it is now.";
    return this.#isReading && !this.#lines.lines.length ? "Reading…" : "";
  }

  #nameOf({ task, attempt }) {
    const row = attempt ? this.store.fold.get("attempt", attempt) : null;
    const found = this.store.fold.get("task", row ? row.task_id : task);
    const name = found ? found.name || found.task_id : "a task";
    return row ? `Only ${name}, attempt ${row.number}` : `Only ${name}`;
  }

  #drawLines() {
    const { lines } = this.#lines;
    const { scrollTop, clientHeight } = this.scroll;
    const first = Math.max(0, Math.floor(scrollTop / LINE_PX) - BEYOND);
    const shown = lines.slice(first, first + Math.ceil(clientHeight / LINE_PX) + 2 * BEYOND);
    this.spacer.style.height = `${lines.length * LINE_PX}px`;
    this.body.style.transform = `translateY(${first * LINE_PX}px)`;
    this.scroll.dataset.lines = lines.length;
    const empty = html`<p class="note none">Nothing has been printed yet.</p>`;
    const isEmpty = !lines.length && !this.#isReading;
    render(isEmpty ? empty : repeat(shown, (line, i) => first + i, (line, i) => this.#line(line, first + i)), this.body);
  }

  #line(line, place) {
    const before = this.#lines.lines[place - 1];
    const isFirst = before?.attempt !== line.attempt;
    const who = isFirst
      ? html`<button class="link" data-task=${line.task} title=${`${line.taskId}, attempt ${line.number}`}>${line.taskId}${line.number > 1 ? ` #${line.number}` : ""}</button>`
      : nothing;
    const text = line.leftOut
      ? html`<em class="cut">… ${fileSize(line.leftOut)} left out; <a href=${`/api/artifacts/${line.whole}/content/`} download>the whole output</a></em>`
      : html`<span>${line.text.replace(CONTROLS, "\u2423")}</span>`;
    return html`<div class="line" ?data-found=${place === this.#marked} ?data-first=${isFirst}><span class="who">${who}</span>${text}</div>`;
  }

  #key(event) {
    if (event.target !== this.scroll) return;
    if (event.key === "End") this.#follow(true);
    else if (event.key === "Home") this.scroll.scrollTop = 0;
    else return;
    event.preventDefault();
  }

  #type(text) {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.#find(text.trim()), TYPING_MS);
  }

  async #find(text, before = null) {
    const earlier = before === null ? [] : this.#search.hits;
    this.#search = { text, hits: text ? earlier : null, next: null };
    if (text) {
      const scope = this.#scope.task ? { task: this.#scope.task } : {};
      try {
        const { hits, next } = await api.searchOutputs(this.store.config.session, { text, ...scope, ...(before === null ? {} : { before }) });
        if (this.#search.text !== text) return;
        this.#search = { text, hits: [...earlier, ...hits], next };
      } catch (error) {
        this.#trouble = `The search failed: ${error.message}`;
        this.draw();
      }
    }
    this.#drawHits();
  }

  #drawHits() {
    const { text, hits, next } = this.#search;
    this.found.hidden = hits === null;
    if (hits === null) return;
    const count = html`<li class="note" role="status">${hits.length ? `${plural(hits.length, "place")}${next === null ? "" : " so far"}, the latest first` : next === null ? "It was printed nowhere." : "Not among the latest."}</li>`;
    const hit = (one) =>
      html`<li><button class="link" @click=${() => this.#goTo(one)}>${one.task_id}${one.number > 1 ? ` #${one.number}` : ""}</button> <code>${one.excerpt.replace(/\s+/g, " ").replace(CONTROLS, "\u2423")}</code></li>`;
    render(html`${count}${hits.map(hit)}${next === null ? nothing : html`<li><button @click=${() => this.#find(text, next)}>Look further back</button></li>`}`, this.found);
  }

  // Shows the attempt alone, from its beginning as far as the place that was found.
  async #goTo({ attempt, offset }) {
    this.#scope = { attempt };
    this.#follows = false;
    this.#hasMoreBefore = false;
    this.#lines.clear();
    for (let pages = 0, after = 0; pages < PAGES_TO_A_HIT; pages++) {
      const page = await this.#read({ after });
      if (!page) return;
      this.#lines.append(page);
      if (!page.more || page.pieces.some((piece) => piece.offset > offset)) break;
      after = page.last;
    }
    this.#marked = this.#lines.lineAt(attempt, offset);
    this.#drawLines();
    this.scroll.scrollTop = Math.max(0, (this.#marked - 5) * LINE_PX);
    this.lastTop = this.scroll.scrollTop;
    this.#drawLines();
  }
}
