// On every page: how much waits for who looks, in the navigation, the page's title and its icon; and the key that searches.

import * as api from "./api.js";
import { setText } from "./dom.js";
import { plural } from "./format.js";
import { offerNotifications, tellNews } from "./inbox/notifications.js";
import "./menus.js";
import { Poll } from "./poll.js";

const LOOK_MS = 2000;
const LONGEST_MS = 30_000;
const HIDDEN_MS = 10_000; // a page that nobody sees is what calls people: by its title, its icon, and a notification

const badge = document.querySelector("#waiting");
const icon = document.querySelector("#icon");
const calmIcon = icon.href;
const title = document.title;
const poll = new Poll(look, { everyMs: LOOK_MS, longestMs: LONGEST_MS, hiddenMs: HIDDEN_MS });

async function look() {
  const { waiting, more } = await api.waitingCount();
  const count = `${waiting}${more ? "+" : ""}`;
  badge.hidden = !waiting;
  setText(badge.firstElementChild, count);
  setText(badge.lastElementChild, `, ${more ? "more than " : ""}${plural(waiting, "thing")} waiting for you`);
  const needed = waiting ? `(${count}) needs you · ${title}` : title;
  if (document.title !== needed) document.title = needed;
  const href = waiting ? icon.dataset.needed : calmIcon;
  if (icon.href !== href) icon.href = href;
  tellNews(waiting, count);
}

// `/` leads to the search, as long as nobody is writing.
function onKey(event) {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isWriting(event.composedPath()[0])) return;
  event.preventDefault();
  const box = document.querySelector("#q");
  if (box) box.focus();
  else location.assign("/search/");
}

function isWriting(node) {
  return node.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(node.tagName) || document.querySelector("dialog[open]") !== null;
}

document.addEventListener("keydown", onKey);
document.addEventListener("decided", () => poll.soon());
offerNotifications(document.querySelector("#notify"));
poll.soon();
