// Something looked at again and again: at its pace while that goes well, ever slower while it does not, and in a hidden page only
// where somebody is to be called back to it.

export class Poll {
  #timer = 0;
  #busy = false;
  #stopped = false;

  // `look()` resolves when it went well; `onTrouble(error)` hears why not, and null when it goes well again. `hiddenMs`: the pace
  // of a hidden page, null for never.
  constructor(look, { everyMs, longestMs, hiddenMs = null, onTrouble = () => {} }) {
    Object.assign(this, { look, everyMs, longestMs, hiddenMs, onTrouble, pause: everyMs });
    document.addEventListener("visibilitychange", () => document.hidden || this.soon());
  }

  // Looks now, and goes on from there.
  async soon() {
    clearTimeout(this.#timer);
    if (this.#busy || this.#stopped) return;
    if (document.hidden && this.hiddenMs === null) return;
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
    if (!this.#stopped) this.#timer = setTimeout(() => this.soon(), document.hidden ? Math.max(this.pause, this.hiddenMs ?? 0) : this.pause);
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }
}
