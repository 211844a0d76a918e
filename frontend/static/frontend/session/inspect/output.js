// The end of what the last attempt of a task prints, followed until it is over.

import * as api from "../../api.js";
import { latestAttempt } from "../../task_progress.js";
import { html, nothing, ref } from "../../vendor/lit.js";

const OUTPUT_MS = 1000; // between two looks at the output of a running attempt
const OUTPUT_TAIL = 16_000; // characters

export class OutputTail {
  #timer = 0;

  // `redraw()` draws the view that this is a part of.
  constructor({ store, redraw }) {
    Object.assign(this, { store, redraw, row: null, printed: null });
  }

  follow(row) {
    Object.assign(this, { row, printed: null });
    this.#look();
  }

  stop() {
    clearTimeout(this.#timer);
    this.row = null;
  }

  draw() {
    const text = this.printed?.text;
    if (!text) return nothing;
    return html`<section class="output"><h3>Output</h3><pre tabindex="0" aria-label="Output" ${ref((pre) => this.#stayAtEnd(pre))}>${text}</pre></section>`;
  }

  // Whoever reads the end goes on reading the end.
  #stayAtEnd(pre) {
    if (!pre) return;
    const wasAtEnd = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4;
    if (wasAtEnd) requestAnimationFrame(() => pre.scrollTo(0, pre.scrollHeight));
  }

  async #look() {
    clearTimeout(this.#timer);
    const { row, store } = this;
    const attempt = latestAttempt(store.fold, row);
    try {
      if (attempt) this.#print(row, await this.#read(row, attempt));
    } catch (error) {
      this.#print(row, { ...this.printed, text: `The output cannot be read: ${error.message}` });
    }
    if (this.row !== row) return;
    const isOver = attempt?.ended_at && store.fold.get("task", row)?.ended_at;
    if (!isOver) this.#timer = setTimeout(() => this.#look(), OUTPUT_MS);
  }

  async #read(row, attempt) {
    const { printed } = this;
    if (printed?.attempt !== attempt.id) return (await api.task(row)).output;
    const end = printed.offset + printed.text.length;
    const { text } = await api.output(row, attempt.number, end);
    const whole = printed.text + text;
    return { attempt: attempt.id, offset: end + text.length - Math.min(whole.length, OUTPUT_TAIL), text: whole.slice(-OUTPUT_TAIL) };
  }

  #print(row, printed) {
    if (this.row !== row) return;
    this.printed = printed;
    this.redraw();
  }
}
