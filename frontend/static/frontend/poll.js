// Something looked at again and again: at its pace while that goes well, ever slower while it does not, never in a hidden page.

export class Poll {
  #timer = 0;
  #busy = false;
  #stopped = false;

  // `look()` resolves when it went well; `onTrouble(error)` hears why not, and null when it goes well again.
  constructor(look, { everyMs, longestMs, onTrouble = () => {} }) {
    Object.assign(this, { look, everyMs, longestMs, onTrouble, pause: everyMs });
    document.addEventListener("visibilitychange", () => document.hidden || this.soon());
  }

  // Looks now, and goes on from there.
  async soon() {
    clearTimeout(this.#timer);
    if (this.#busy || this.#stopped) return;
    if (document.hidden) return;
    this.#busy = true;
    try {
      await this.look();
      this.pause = this.everyMs;
      this.onTrouble(null);
    } catch (error) {
      this.pause = Math.min(this.pause * 2, this.longestMs);
      this.onTrouble(error);
    }
    this.#busy = false;
    if (!this.#stopped) this.#timer = setTimeout(() => this.soon(), this.pause);
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }
}
