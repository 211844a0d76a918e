// When what is read, and not watched, is drawn: each panel at most every so often, and in one frame one of them.

const PANEL_MS = 200;

const asked = []; // panels that were put off, those that wait longest first
let frame = NaN; // the one that goes on, and...
let before = NaN; // ...the one before
let drawnIn = NaN;

export class Pace {
  #drawnAt = -Infinity;

  constructor({ isDue = false, pause = PANEL_MS } = {}) {
    Object.assign(this, { isDue, pause, askedAt: NaN });
  }

  // Whether to draw in this frame; a panel that is due asks in every one.
  takes(time) {
    if (!this.isDue || time - this.#drawnAt < this.pause) return false;
    if (time !== frame) [before, frame] = [frame, time];
    this.askedAt = time;
    while (asked.length && asked[0].askedAt < before) asked.shift(); // has been closed, or drawn for another reason
    if (drawnIn === time || (asked.length && asked[0] !== this)) return this.#putOff();
    if (asked[0] === this) asked.shift();
    drawnIn = this.#drawnAt = time;
    this.isDue = false;
    return true;
  }

  #putOff() {
    if (!asked.includes(this)) asked.push(this);
    return false;
  }
}
