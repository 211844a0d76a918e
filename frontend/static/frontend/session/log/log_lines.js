// Pieces of a log as lines, bounded at both ends. Pure: no DOM.
//
// A line is {piece: place in the log, attempt, number, task: row, taskId, text, leftOut, whole}. Where an attempt goes on in the
// middle of a line, and nobody else printed in between, its text is put behind what is there.

export const MOST_LINES = 100_000;
const LONGEST_LINE = 4_000; // characters that are shown of one

export class LogLines {
  constructor() {
    this.clear();
  }

  clear() {
    this.lines = [];
    this.first = null; // places of the first and the last piece
    this.last = null;
    this.dropped = { before: false, after: false };
    this.isOpen = false; // the last line has no end yet
  }

  // What follows; returns how many lines were dropped at the beginning to make room.
  append({ pieces, first, last }) {
    for (const piece of pieces) this.#add(piece);
    if (!pieces.length) return 0;
    this.first ??= first;
    this.last = last;
    const beyond = Math.max(0, this.lines.length - MOST_LINES);
    if (beyond) {
      this.lines.splice(0, beyond);
      this.first = this.lines[0].piece;
      this.dropped.before = true;
    }
    return beyond;
  }

  // What stands before; returns how many lines that were.
  prepend({ pieces, first, last }) {
    if (!pieces.length) return 0;
    const before = new LogLines();
    before.append({ pieces, first, last });
    this.lines.unshift(...before.lines);
    this.first = first;
    this.last ??= last;
    const beyond = Math.max(0, this.lines.length - MOST_LINES);
    if (beyond) {
      this.lines.length -= beyond;
      this.last = this.lines.at(-1).piece;
      this.dropped.after = true;
      this.isOpen = false;
    }
    return before.lines.length;
  }

  #add(piece) {
    const about = { piece: piece.id, attempt: piece.attempt, number: piece.number, task: piece.task, taskId: piece.task_id };
    if (piece.left_out) {
      this.lines.push({ ...about, text: "", leftOut: piece.left_out, whole: piece.whole });
      this.isOpen = false;
    }
    const texts = piece.text.split("\n");
    const isEnded = texts.at(-1) === "";
    if (isEnded) texts.pop();
    const last = this.lines.at(-1);
    if (this.isOpen && last?.attempt === piece.attempt && texts.length) {
      last.text = cut(last.text + texts.shift());
      last.piece = piece.id;
    }
    let { offset } = piece;
    for (const text of texts) {
      this.lines.push({ ...about, offset, text: cut(text) });
      offset += text.length + 1;
    }
    this.isOpen = !isEnded;
  }

  // The place of the line of an attempt that has the character at `offset`, or -1.
  lineAt(attempt, offset) {
    let found = -1;
    this.lines.forEach((line, i) => {
      if (line.attempt === attempt && line.offset <= offset) found = i;
    });
    return found;
  }
}

function cut(text) {
  const left = text.length - LONGEST_LINE;
  return left > 0 ? `${text.slice(0, LONGEST_LINE)}… (the line goes on)` : text;
}
