// With nothing chosen: what waits for the reader, requests and their results, agents, devices, and the events as sentences.

import * as api from "../api.js";
import { element, pageData } from "../dom.js";
import { payloadOf, PlanBox } from "../plan_box.js";
import { Feed } from "./feed.js";
import { Pace } from "./pace.js";
import { drawAgents, drawRequests } from "./panels.js";
import { Sayings } from "./sayings.js";
import { WaitingPanel } from "./waiting_panel.js";

const RETOLD_MS = 300; // what had happened until a moment is told when that has been on view for so long...
const RETOLD_LATEST_MS = 1500; // ...and while moments follow each other, dragged or played, this often
const FEED_PAST = 100; // events that the feed shows from before the page was opened

export class Overview {
  #stale = new Set(); // names of tables
  #pace = new Pace();
  #toldAt = null; // the event of the past at which the feed ends, null in the present
  #retelling = 0;
  #retellBy = 0;

  constructor(node, { store }) {
    Object.assign(this, { node, store });
    const { fold, config } = store;
    const nameOf = (id) => store.deviceName(id);
    const onOpen = (taskRow) => store.select({ kind: "task", id: taskRow });
    this.feed = new Feed(this.at("#feed"), { fold: store.present, deviceName: (task) => store.placeOf(task), personOf: (author) => store.personOf(author), onOpen });
    this.waiting = new WaitingPanel(this.at("#waiting-panel"), { fold, personOf: (author) => store.personOf(author), refusal: config.refusal, nameOf, now: () => store.now() });
    this.sayings = new Sayings(this.at("#sayings"), { store });
    this.#listenForFilter();
    this.#listenForRequests();
  }

  at(selector) {
    return this.node.querySelector(selector);
  }

  // The events before the snapshot, or before the moment on view, as far as the feed shows them.
  async tellPast(seq) {
    const wanted = (this.#toldAt = this.store.moment?.seq ?? null);
    if (!seq) return this.feed.clear();
    const { events } = await api.eventsToTell(this.store.config.session, Math.max(0, seq - FEED_PAST), FEED_PAST);
    if (wanted !== this.#toldAt) return;
    this.feed.clear(wanted === null ? seq : Infinity); // in the present events have come meanwhile
    this.store.present.remember(events);
    this.feed.push(events.filter((event) => event.seq <= seq));
  }

  told(events) {
    if (this.store.isLive) this.feed.push(events);
  }

  // The feed ends where the moment on view does.
  truthChanged() {
    if ((this.store.moment?.seq ?? null) === this.#toldAt) return;
    const now = performance.now();
    if (!this.#retelling) this.#retellBy = now + RETOLD_LATEST_MS;
    clearTimeout(this.#retelling);
    this.#retelling = setTimeout(() => this.#retell(), Math.max(0, Math.min(RETOLD_MS, this.#retellBy - now)));
  }

  #retell() {
    this.#retelling = 0;
    this.tellPast(this.store.shownFold.seq).catch((error) => console.warn("earlier events cannot be read:", error.message));
  }

  named() {
    for (const option of this.at(".feed-filter [name=by]").options) if (option.value) option.textContent = this.store.personOf(option.value);
    this.feed.named();
  }

  update(changes) {
    this.waiting.update(changes);
    this.sayings.update(changes);
    for (const name of Object.keys(changes.ids)) this.#stale.add(name);
    if (this.#stale.size) this.#pace.isDue = true;
  }

  tick() {
    this.waiting.tick();
    this.#pace.isDue = true; // clocks of agents that work
  }

  frame(time) {
    this.feed.tick(time);
    this.sayings.frame(time);
    if (!this.#pace.takes(time)) return;
    this.#draw();
    this.#stale.clear();
  }

  #draw() {
    const { store } = this;
    const standOf = (agent) => store.standings.agentLook(agent);
    drawAgents(this.at("#agents"), store.fold, { nameOf: (id) => store.deviceName(id), standOf, now: store.now() });
    if (!this.at("#requests").contains(document.activeElement) || this.#stale.has("inbox")) drawRequests(this.at("#requests"), store.fold, store.now());
  }

  #listenForFilter() {
    const form = this.at(".feed-filter");
    const [kind, by, text] = ["kind", "by", "text"].map((name) => form.elements[name]);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => this.feed.filter({ kind: kind.value, by: by.value, text: text.value }));
    this.feed.onKinds = (kinds, authors) => {
      for (const value of kinds) kind.append(element("option", { value }, value.replaceAll("_", " ")));
      for (const value of authors) by.append(element("option", { value }, this.store.personOf(value)));
    };
  }

  #listenForRequests() {
    const form = this.at("form.request");
    if (!form) return;
    const box = new PlanBox(form, pageData("examples"), async (text) => {
      await api.submitRequest(this.store.config.session, payloadOf(text));
      box.clear();
      form.closest("details").open = false;
      this.store.followNewest();
    });
  }
}
