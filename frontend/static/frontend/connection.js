// A session's stream over a websocket: a snapshot, then events, handed over once per animation frame and acknowledged.
//
// The connection is resumed from the last event that was applied, after growing pauses; where an event is missing it starts
// again from that same place. However it ends, it is tried again, unless the server said why it will not be (`error`).

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
const HIDDEN_FLUSH_MS = 250; // a hidden page has no animation frames, but must not fall behind

export class Connection {
  #socket = null;
  #pause = FIRST_PAUSE_MS;
  #timer = 0;
  #queue = [];
  #parts = [];
  #scheduled = false;
  #held = false; // messages wait until what they follow is applied
  #closed = false;

  // `url(seq)` is where to resume after `seq` (null: from a snapshot). `onSnapshot({seq, rows})` and `onEvents([event])`
  // return the seq that is applied then; `onState` gets "connecting", "live" or "lost"; `onRefused(code, message)` is the end.
  // What is no event is handed over at once: `onHeartbeat({at, seq, lease, standing})`, `onStanding(standing)`, `onDeltas([delta])`.
  constructor({ url, onSnapshot, onEvents, onState, onHeartbeat, onStanding, onDeltas, onRefused }) {
    Object.assign(this, { url, onSnapshot, onEvents, onState, onHeartbeat, onStanding, onDeltas, onRefused });
    this.seq = null;
    addEventListener("online", () => this.#retryNow());
    document.addEventListener("visibilitychange", () => this.#seen());
  }

  open() {
    this.onState("connecting");
    const socket = new WebSocket(this.url(this.seq));
    this.#socket = socket;
    this.#queue = [];
    this.#parts = [];
    socket.onopen = () => this.onState("live");
    socket.onmessage = ({ data }) => this.#receive(socket, JSON.parse(data));
    socket.onclose = () => this.#lost(socket);
  }

  // Opens behind a snapshot that came another way: what follows `seq` waits until `applied`, a promise, is kept.
  join(seq, applied) {
    this.seq = seq;
    this.#held = true;
    applied.then(() => {
      this.#held = false;
      this.#flush();
    });
    this.open();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  // Gives up a connection that nothing comes over any more: a machine that slept, or a net that went, ends none by itself.
  renew() {
    if (this.#closed || !this.#socket) return;
    const silent = this.#socket;
    this.#lost(silent);
    silent.close();
    this.#retryNow();
  }

  #receive(socket, message) {
    if (socket !== this.#socket) return;
    this.#pause = FIRST_PAUSE_MS;
    if (message.type === "part") return this.#part(socket, message);
    if (message.type === "error") return this.#refused(message);
    if (message.type === "heartbeat") return this.onHeartbeat(message);
    if (message.type === "standing") return this.onStanding(message.standing);
    if (message.type === "deltas") return this.onDeltas(message.deltas);
    if (message.type === "snapshot") this.#queue = [this.#joined(message)];
    else if (message.type === "events") this.#queue.push(message);
    else return; // "resume": the server waits for an acknowledgement, which the next flush sends
    this.#schedule();
  }

  // What is too large for one message comes as parts of its text.
  #part(socket, { text, more }) {
    this.#parts.push(text);
    if (more) return;
    const whole = this.#parts.join("");
    this.#parts = [];
    this.#receive(socket, JSON.parse(whole));
  }

  // A large snapshot comes in pieces, all but the last with `more`: nothing is shown before it is whole.
  #joined(message) {
    const [begun] = this.#queue;
    if (!begun?.more) return message;
    for (const [table, rows] of Object.entries(message.rows)) Object.assign((begun.rows[table] ??= {}), rows);
    begun.more = message.more;
    return begun;
  }

  #refused({ code, message }) {
    this.close();
    this.onState("lost");
    this.onRefused(code, message);
  }

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    if (document.hidden) setTimeout(() => this.#flush(), HIDDEN_FLUSH_MS);
    else requestAnimationFrame(() => this.#flush());
  }

  #flush() {
    this.#scheduled = false;
    const queue = this.#queue;
    if (this.#held || !queue.length || queue[0].more) return;
    this.#queue = [];
    try {
      if (queue[0].type === "snapshot") this.seq = this.onSnapshot(queue.shift());
      if (queue.length) this.seq = this.onEvents(queue.flatMap((message) => message.events));
    } catch (error) {
      if (error.name !== "Gap") throw error;
      this.#socket?.close();
      return;
    }
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify({ type: "ack", seq: this.seq }));
  }

  #lost(socket) {
    if (socket !== this.#socket || this.#closed) return;
    this.#socket = null;
    this.onState("lost");
    this.#timer = setTimeout(() => this.open(), this.#pause * (0.5 + Math.random() / 2));
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
  }

  #seen() {
    this.#flush();
    this.#retryNow();
  }

  #retryNow() {
    if (this.#socket || this.#closed || document.hidden) return;
    clearTimeout(this.#timer);
    this.open();
  }
}
