// Time under the views: the whole stream as a bar with its density, edits and failures. Dragged to a moment, everything on the
// page is as it was then; it can be played, compared with another moment, forked from, and left for the present.

import * as api from "../../api.js";
import { clock } from "../../format.js";
import { html, nothing, render, svg } from "../../vendor/lit.js";
import { askBefore } from "../asking.js";
import { foldAt } from "../snapshot.js";
import { compare, nearest, spread } from "./moments.js";

const BUCKETS = 200;
const DENSITY_MS = 10_000; // between two looks at the density of the present
const FIRST_MS = 1000; // and at most until there is something to show
const PLAY_EVENTS = 500; // that are read ahead
const AHEAD_EVENTS = 100_000; // that the server is asked to fold before the first look
const SPEEDS = [1, 5, 20, 50];
const HEIGHT = 34; // pixels of the bars
const MARKS = { edit: "held", failure: "failed", request: "pending", approval: "held", outcome: "done" };
const COMPARED = 40; // tasks that a comparison names

export class TimeBar {
  #wanted = null; // seq of the moment that was asked for last
  #busy = false;
  #looked = 0;
  #isAhead = false;
  #known = []; // folds of moments that were looked at, of which nobody changes any
  #told = new WeakMap(); // by such a fold: {at, notKept}
  #timer = 0;

  constructor(host, { store, outbox, tell }) {
    Object.assign(this, { host, store, outbox, tell, density: null, speed: 5, playing: null, marked: null, compared: null });
    host.addEventListener("keydown", (event) => event.key === "Escape" && this.#live());
  }

  // The moment that the address names, or the present.
  start() {
    const at = Number(this.store.address.get("at"));
    if (at > 0) this.#goTo(at);
    this.#look();
  }

  told() {
    const pause = this.density?.buckets.length ? DENSITY_MS : FIRST_MS;
    this.#timer ||= setTimeout(() => this.#look(), Math.max(0, this.#looked + pause - performance.now()));
  }

  truthChanged() {
    this.draw();
  }

  tick() {
    if (this.playing) this.draw();
  }

  async #look() {
    this.#timer = 0;
    this.#looked = performance.now();
    try {
      this.density = await api.density(this.store.config.session, BUCKETS);
    } catch (error) {
      console.warn("the past cannot be read:", error.message);
    }
    this.draw();
  }

  // Shows the session as it was after event `seq`. While one moment is read the last one asked for waits, and follows what came.
  async #goTo(seq) {
    this.#wanted = seq;
    if (this.#busy) return;
    this.#busy = true;
    try {
      while (this.#wanted !== null) {
        const wanted = this.#wanted;
        const { store } = this;
        const near = nearest([...this.#known, store.present], wanted);
        const fold = near.seq === wanted && this.#told.has(near) ? near : await this.#read(wanted, near);
        if (this.#wanted === null) break; // back to the present meanwhile
        if (this.#wanted === wanted) this.#wanted = null;
        store.showMoment({ fold, ...this.#told.get(fold) });
      }
      this.tell("");
    } catch (error) {
      this.#wanted = null;
      this.tell(`That moment cannot be shown: ${error.message}`);
    }
    this.#busy = false;
    this.draw();
  }

  // The fold after event `seq`, as what the server says that differs from `near`.
  async #read(seq, near) {
    const { store } = this;
    const base = near === store.present ? near.copy() : near; // as it is now, whatever comes meanwhile
    const found = await api.moment(store.config.session, seq, base.seq);
    const fold = await foldAt(base, found);
    this.#told.set(fold, { at: found.at, notKept: found.not_kept });
    this.#known = spread([...this.#known, fold]);
    return fold;
  }

  // To fold a long stream takes the server a second: it does so while the hand goes to the bar.
  async #foldAhead() {
    if (this.#isAhead) return;
    this.#isAhead = true;
    const { config, present } = this.store;
    const until = Math.min(present.seq, AHEAD_EVENTS);
    await api.moment(config.session, until, until).catch(() => (this.#isAhead = false));
  }

  #step(by) {
    this.#stop();
    const seq = this.store.fold.seq + by;
    if (seq >= this.store.present.seq) this.#live();
    else this.#goTo(Math.max(1, seq));
  }

  #live() {
    this.#stop();
    this.#wanted = null;
    this.compared = null;
    this.store.backToLive();
    this.draw();
  }

  #slide(value) {
    this.#stop();
    const { buckets } = this.density;
    if (value >= buckets.length) this.#live();
    else this.#goTo(Math.max(1, buckets[value].seq));
  }

  // Plays from the moment on view: events come as far apart as they did, `speed` times as fast.
  async #play() {
    if (this.store.isLive) await this.#goTo(1);
    const run = { at: Date.parse(this.store.moment.at), since: performance.now(), speed: this.speed, ahead: [], seq: this.store.fold.seq };
    this.playing = run;
    this.draw();
    while (this.playing === run) {
      if (!run.ahead.length) {
        const { events } = await api.events(this.store.config.session, run.seq, PLAY_EVENTS).catch(() => ({ events: [] }));
        if (this.playing !== run) return;
        if (!events.length) return this.#live();
        run.ahead = events;
        run.seq = events.at(-1).seq;
      }
      const now = run.at + (performance.now() - run.since) * run.speed;
      const due = run.ahead.findIndex((event) => Date.parse(event.at) > now);
      const events = run.ahead.splice(0, due < 0 ? run.ahead.length : due);
      if (events.length) this.store.advance(events);
      await new Promise(requestAnimationFrame);
    }
  }

  #stop() {
    this.playing = null;
  }

  #setSpeed(speed) {
    this.speed = speed;
    if (this.playing) {
      this.#stop();
      this.#play();
    }
  }

  #mark() {
    const { fold, shownFold } = this.store;
    this.marked = { seq: fold.seq, at: this.store.isLive ? new Date(this.store.now()).toISOString() : this.store.moment.at, fold: shownFold.copy() };
    this.compared = null;
    this.draw();
  }

  #compare() {
    const [before, after] = [this.marked, { seq: this.store.fold.seq, fold: this.store.shownFold }].sort((a, b) => a.seq - b.seq);
    this.compared = { from: before.seq, to: after.seq, ...compare(before.fold, after.fold, this.store.constellation) };
    this.draw();
  }

  async #fork() {
    const { store } = this;
    const seq = store.fold.seq;
    const asked = await askBefore({
      title: "Fork from this moment?",
      text: `A new session goes on from the graph as it was after event ${seq}. This one is not changed.`,
      verb: "Fork",
    });
    if (!asked) return;
    const forked = async (id) => location.assign(`/sessions/${(await api.forkConstellation(store.constellation, seq, id)).session}/`);
    await this.outbox.send("Fork", forked, () => ""); // what has been stays as it was
  }

  get #place() {
    const { buckets } = this.density;
    if (this.store.isLive) return buckets.length;
    const found = buckets.findIndex((bucket) => bucket.seq >= this.store.fold.seq);
    return found < 0 ? buckets.length : found;
  }

  draw() {
    const shown = this.density?.buckets.length > 0;
    this.host.hidden = !shown;
    if (!shown) return;
    const { store, playing } = this;
    const when = store.isLive ? "Now" : clock(store.moment.at);
    const told = store.isLive ? when : `${when}, after event ${store.fold.seq.toLocaleString("en")}`;
    // What comes with a moment stands above the bar, which stays where it is, as long as it is, under the hand that drags it.
    render(
      html`${this.compared ? this.#comparison() : nothing}
        ${store.isLive && !this.marked ? nothing : this.#aboutMoment()}
        <div class="time-row">
          <button type="button" aria-label=${playing ? "Stop" : "Play"} @click=${() => (playing ? this.#halt() : this.#play())}>${playing ? "❚❚" : "▶"}</button>
          <select aria-label="Speed" @change=${(event) => this.#setSpeed(Number(event.target.value))}>
            ${SPEEDS.map((speed) => html`<option value=${speed} ?selected=${speed === this.speed}>${speed}x</option>`)}
          </select>
          <div class="scrub" @pointerenter=${() => this.#foldAhead()} @focusin=${() => this.#foldAhead()}>
            ${this.#bars()}
            <input type="range" min="0" max=${this.density.buckets.length} .value=${String(this.#place)} aria-label="Moment" aria-valuetext=${told} @input=${(event) => this.#slide(Number(event.target.value))} />
          </div>
          <button type="button" aria-label="The event before" @click=${() => this.#step(-1)}>‹</button>
          <button type="button" aria-label="The next event" ?disabled=${store.isLive} @click=${() => this.#step(1)}>›</button>
          <span class="when" role="status">${when}</span>
          <button type="button" @click=${() => this.#mark()}>Mark</button>
        </div>`,
      this.host,
    );
  }

  #aboutMoment() {
    const { store } = this;
    const mayFork = !store.isLive && store.config.may_operate && store.constellation;
    return html`<div class="about-moment">
      ${store.isLive ? nothing : html`<button type="button" class="primary" @click=${() => this.#live()}>Back to live</button>`}
      ${mayFork ? html`<button type="button" @click=${() => this.#fork()}>Fork from here…</button>` : nothing}
      ${this.marked ? html`<button type="button" @click=${() => this.#compare()}>Compare with ${clock(this.marked.at)}</button>` : nothing}
      ${store.isLive ? nothing : html`<span class="note">After event ${store.fold.seq.toLocaleString("en")}.</span>`}
      ${store.isLive || !store.moment.notKept.length ? nothing : html`<span class="note">Not kept of this moment: ${store.moment.notKept.join(", ")}.</span>`}
    </div>`;
  }

  // The address names the moment where it stopped, not where playing began.
  #halt() {
    this.#stop();
    this.store.address.set({ at: this.store.moment?.seq ?? null });
    this.draw();
  }

  #bars() {
    const { buckets, marks, first_at: first, last_at: last } = this.density;
    const most = Math.max(1, ...buckets.map((bucket) => bucket.events));
    const [from, to] = [Date.parse(first), Math.max(Date.parse(last), Date.parse(first) + 1)];
    const at = (iso) => (100 * (Date.parse(iso) - from)) / (to - from);
    const wide = 100 / buckets.length;
    return svg`<svg class="bars" width="100%" height=${HEIGHT} preserveAspectRatio="none" viewBox="0 0 100 ${HEIGHT}" aria-hidden="true">
      ${buckets.map((bucket, i) => {
        const high = bucket.events ? Math.max(2, (HEIGHT - 10) * Math.sqrt(bucket.events / most)) : 0;
        return high ? svg`<rect class="density" x=${i * wide} y=${HEIGHT - high} width=${wide * 0.9} height=${high} data-tone=${bucket.failures ? "failed" : nothing}></rect>` : nothing;
      })}
      ${marks.filter((mark) => mark.kind in MARKS).map((mark) => svg`<rect class="pin" x=${at(mark.at)} y="0" width="0.35" height="8" data-tone=${MARKS[mark.kind]}><title>${mark.kind}: ${mark.text}</title></rect>`)}
    </svg>`;
  }

  #comparison() {
    const { from, to, added, removed, changed } = this.compared;
    const names = (list) => (list.length ? `${list.slice(0, COMPARED).join(", ")}${list.length > COMPARED ? ` and ${list.length - COMPARED} more` : ""}` : "none");
    return html`<section class="compared" aria-label="Comparison">
      <h3>Between event ${from} and event ${to}</h3>
      <dl>
        <dt>added</dt><dd>${names(added)}</dd>
        <dt>removed</dt><dd>${names(removed)}</dd>
        <dt>changed</dt>
        <dd>${changed.length ? html`<ul>${changed.slice(0, COMPARED).map(({ task, was, is }) => html`<li><b>${task}</b> ${Object.keys(is).map((name) => `${name}: ${short(was[name])} → ${short(is[name])}`).join("; ")}</li>`)}</ul>` : "none"}</dd>
      </dl>
      <button type="button" class="quiet" @click=${() => this.#closeComparison()}>Close</button>
    </section>`;
  }

  #closeComparison() {
    this.compared = null;
    this.draw();
  }
}

function short(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text === "" || text === undefined ? "nothing" : text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
