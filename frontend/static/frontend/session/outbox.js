// Commands of this page: each says whether it was taken. What an outage swallowed is looked for in the stream when the connection
// is back; what is not there is sent again under the same id, within KEPT_MS and while its target is as it was. A cancel or a
// decision never is.

import * as api from "../api.js";

const KEPT_MS = 30_000;
const NO_GATEWAY = 502; // and above: said by what stands before a server that is not there, or by one without its database

export class Outbox {
  #kept = [];
  #isBusy = false;

  // `tell(text)` shows a sentence, empty for none; `truth` knows the connection; `stream` is what the page has of it: `readHead()`
  // asks the server for its last event, `has(seq)` says whether the page has that one, `isTaken(id)` whether a command of that id.
  constructor({ tell, truth, stream }) {
    Object.assign(this, { tell, truth, stream });
  }

  // `call(client id)` sends it. `target()` gives what it was meant for: as text, the same while nothing there has changed; null
  // where it is never sent again. Resolves to whether the server took it.
  async send(name, call, target = null) {
    const command = { name, call, id: api.clientId(), target, before: target?.(), until: Date.now() + KEPT_MS };
    try {
      await call(command.id);
      this.tell("");
      return true;
    } catch (error) {
      if (isAnswer(error)) this.tell(error.message);
      else this.#missed(command);
      return false;
    }
  }

  #missed(command) {
    this.#kept.push({ ...command, head: null }); // seq of the last event that there was when the connection was back
    const then = command.target ? `It is sent again when the connection is back, within ${KEPT_MS / 1000} s.` : "It is not sent again by itself.";
    this.tell(`${command.name}: no answer, so nobody knows yet whether it was taken. ${then}`);
  }

  tick() {
    if (this.#kept.length && this.truth.isFresh && !this.#isBusy) this.#settle();
  }

  // What became of each: taken before, sent again now, or neither. Nobody knows before the page has what the stream had by then.
  async #settle() {
    this.#isBusy = true;
    for (const command of this.#kept.splice(0)) {
      command.head ??= await this.stream.readHead().catch(() => null);
      if (command.head === null || !this.stream.has(command.head)) this.#kept.push(command);
      else if (this.stream.isTaken(command.id)) this.tell(`${command.name} was taken; only the answer was lost.`);
      else if (!command.target) this.tell(`${command.name} was not taken, and is not sent again by itself.`);
      else if (Date.now() > command.until) this.tell(`${command.name} was not taken, and is too old to be sent again.`);
      else if (command.target() !== command.before) this.tell(`${command.name} was not sent again: what it was meant for has changed.`);
      else await this.#again(command);
    }
    this.#isBusy = false;
  }

  async #again(command) {
    try {
      await command.call(command.id);
      this.tell(`${command.name}: taken, now that the connection is back.`);
    } catch (error) {
      if (isAnswer(error)) this.tell(`${command.name}: ${error.message}`);
      else this.#missed(command);
    }
  }
}

function isAnswer(error) {
  return error instanceof api.Refused && error.status < NO_GATEWAY;
}
