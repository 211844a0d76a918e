// Whether what the page shows is so: the connection, the server's heartbeat, and how old the last word is.
//
// A connection that opens says nothing yet. What is shown counts as so when the heartbeat of that connection has come, and the
// page has all the events that it names; of each later heartbeat, when the next one comes.

import { clock, duration } from "../format.js";
import { setText } from "../dom.js";

export const SILENT_MS = 12_000; // without a heartbeat (one comes every 5 s) nobody knows what is
const LATE_MS = 2000; // a heartbeat that is later than this makes no page fresh that was not
const WORDS = {
  connecting: "Connecting…",
  live: "Live",
  lost: "Connection lost, trying again…",
  offline: "Offline",
  silent: "The server is silent, trying again…",
  behind: "Catching up…",
  past: "In the past",
};

export class Truth {
  #headOfLast = null; // the seq that the last heartbeat of this connection named
  #due = null; // and the one that the page must have reached to be fresh
  #wasFresh = false;
  #leastLag = Infinity; // of a heartbeat of this connection: our clock when it came, less the server's when it was said

  // `renew()` gives up a connection that has gone silent, and opens another one.
  constructor(store, sign, renew) {
    Object.assign(this, { store, sign, renew, socket: "connecting", standing: null, lease: null });
    this.heardAt = Date.now(); // of our clock, which goes on while the machine sleeps: the last heartbeat, or a change of the connection
    this.knownAt = store.now(); // of the server's clock: until when what is shown was so
    for (const event of ["online", "offline", "pageshow"]) addEventListener(event, () => this.look());
    for (const event of ["visibilitychange", "resume"]) document.addEventListener(event, () => this.look());
  }

  // "connecting", "live" or "lost", as the connection says.
  connected(state) {
    this.socket = state;
    this.#due = this.#headOfLast = null;
    this.#leastLag = Infinity;
    this.heardAt = Date.now();
    this.look();
  }

  // {at, seq, lease: {runner, age_s} or null, standing}
  heartbeat({ at, seq, lease, standing }) {
    const isFresh = this.isFresh; // as far as the one before says
    const late = this.#hears(at);
    this.#due = isFresh || late <= LATE_MS ? (this.#headOfLast ?? seq) : Infinity; // what has waited tells of then, and not of now
    this.#headOfLast = seq;
    this.#knows(at);
    this.lease = lease;
    this.stands(standing);
  }

  // The server's word on the session for this reader: {name, word, tone, waiting, waiting_others, reason}.
  stands(standing) {
    this.standing = standing;
    this.look();
  }

  told(events) {
    if (events.length) this.#knows(events.at(-1).at);
    this.look();
  }

  // What has waited while the page stood still is as old as it is late: it came later than the quickest one by so much. A clock
  // that was set looks the same, and ends with the connection. Returns the ms.
  #hears(at) {
    const lag = Date.now() - Date.parse(at);
    this.#leastLag = Math.min(this.#leastLag, lag);
    const late = lag - this.#leastLag;
    this.heardAt = Date.now() - late;
    return late;
  }

  #knows(at) {
    this.knownAt = Math.max(this.knownAt, Date.parse(at));
  }

  get state() {
    if (!navigator.onLine) return "offline";
    if (this.socket !== "live") return this.#wasFresh ? "lost" : this.socket;
    if (this.#isSilent) return "silent";
    if (this.#due !== null && this.store.present.seq >= this.#due) return "live";
    return this.#wasFresh ? "behind" : "connecting";
  }

  get #isSilent() {
    return Math.abs(Date.now() - this.heardAt) > SILENT_MS; // a clock that was set back tells as little
  }

  get isFresh() {
    return this.state === "live";
  }

  tick() {
    this.look();
    if (navigator.onLine && this.socket !== "lost" && this.#isSilent) this.renew();
  }

  // Draws the sign, stops or starts the clocks, and says on the body whether what is shown is fresh.
  look() {
    const { state, store } = this;
    if (this.isFresh) this.#wasFresh = true;
    store.standStill(this.isFresh ? null : this.knownAt);
    const shown = store.isLive ? state : "past";
    this.sign.dataset.state = shown;
    document.body.dataset.fresh = String(this.isFresh);
    setText(this.sign.querySelector("span"), store.isLive ? `${WORDS[state]}${this.#age()}` : `As of ${clock(store.moment.at)}`);
    if (this.shown === shown) return;
    this.shown = shown;
    store.tell("truthChanged");
  }

  #age() {
    if (this.isFresh || !this.#wasFresh) return "";
    const age = Date.now() + this.store.skew - this.knownAt;
    return ` · As of ${clock(new Date(this.knownAt).toISOString())}, ${duration(Math.max(0, age))} ago`;
  }
}
