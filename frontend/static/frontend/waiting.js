// On every page: how many approvals and questions wait, in the navigation and in the page's title.

import * as api from "./api.js";
import { setText } from "./dom.js";
import { plural } from "./format.js";
import { Poll } from "./poll.js";

const LOOK_MS = 2000;
const LONGEST_MS = 30_000;

const badge = document.querySelector("#waiting");
const title = document.title;
const poll = new Poll(look, { everyMs: LOOK_MS, longestMs: LONGEST_MS });

async function look() {
  const { waiting, more } = await api.waitingCount();
  const count = `${waiting}${more ? "+" : ""}`;
  badge.hidden = !waiting;
  setText(badge.firstElementChild, count);
  setText(badge.lastElementChild, `, ${more ? "more than " : ""}${plural(waiting, "approval")} waiting`);
  document.title = waiting ? `(${count}) ${title}` : title;
}

document.addEventListener("decided", () => poll.soon());
poll.soon();
