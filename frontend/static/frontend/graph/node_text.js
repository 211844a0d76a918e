// What of a task's texts fits into its node, measured in the fonts of graph.css.

import { cutter } from "../format.js";
import { NODE } from "./layout.js";

const SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif';
export const FONTS = { title: `620 13px ${SANS}`, big: `620 21px ${SANS}`, small: `11px ${SANS}`, state: `600 11px ${SANS}` };
export const TEXT_X = 45; // pixels from a node's left edge to its texts
export const TEXT_END = 12; // and from their end to its right edge
const ROOM = NODE.width - TEXT_X - TEXT_END;
const TRIES = 30; // pixels that "1/2" takes from a title

const [title, big, small, state] = [FONTS.title, FONTS.big, FONTS.small, FONTS.state].map(cutter);

export const FIT = {
  title: (text, tries) => title(text, ROOM - (tries ? TRIES : 0)),
  big: (text) => big(text, ROOM),
  state: (text) => state(text, ROOM),
  // Of a task that failed, why; else its id, where it has a name besides, and its device.
  detail: (task, { device, failure }) => small(task.box?.detail || failure || [task.name && task.name !== task.task_id ? task.task_id : "", device].filter(Boolean).join(" · "), ROOM),
};
