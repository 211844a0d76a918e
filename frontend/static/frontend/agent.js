// The page of one agent: the server writes it, this keeps it fresh while the agent lives, and gives states their looks.

import * as api from "./api.js";
import { icon, setText } from "./dom.js";
import { between, clock } from "./format.js";
import { Poll } from "./poll.js";
import { machineLook } from "./states.js";

const LOOK_MS = 2000;
const LONGEST_MS = 30_000;

const notice = document.querySelector("#notice");
const written = new Map(); // part > as the server wrote it last
let troubled = false; // what is on notice is that the page is not fresh
const poll = new Poll(look, { everyMs: LOOK_MS, longestMs: LONGEST_MS, onTrouble });

// The same page again, of which the parts that differ are taken over.
async function look() {
  const response = await fetch(location.pathname, { headers: { Accept: "text/html" } });
  if (response.redirected) return location.reload();
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const part of document.querySelectorAll("[data-part]")) takeOver(part, page.querySelector(`[data-part="${part.dataset.part}"]`));
  endWithAgent();
}

function takeOver(part, fresh) {
  const text = fresh.outerHTML;
  if (written.get(part.dataset.part) === text || part.matches(":active")) return;
  written.set(part.dataset.part, text);
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  const scrolled = [...part.querySelectorAll(".scroll, pre")].map((one) => [one.scrollLeft, one.scrollTop]);
  const opened = [...part.querySelectorAll("details[open]")].map((one) => one.id);
  const taken = document.adoptNode(fresh);
  for (const id of opened) taken.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", "");
  dress(taken);
  part.replaceWith(taken);
  taken.querySelectorAll(".scroll, pre").forEach((one, i) => one.scrollTo(...(scrolled[i] ?? [0, 0])));
  if (focused) counterpart(taken, focused)?.focus({ preventScroll: true });
}

function counterpart(part, { dataset, href, className }) {
  if (dataset.goOn) return part.querySelector(`[data-go-on="${CSS.escape(dataset.goOn)}"]`);
  if (href) return [...part.querySelectorAll("a")].find((link) => link.href === href);
  return className ? part.querySelector(`.${className.split(" ").join(".")}`) : part.querySelector("[tabindex]");
}

function dress(host) {
  for (const one of host.querySelectorAll("[data-machine][data-state]")) {
    const look = machineLook(one.dataset.machine, one.dataset.state);
    one.dataset.tone = look.tone;
    if (one.matches(".chip")) one.prepend(icon(look.shape));
  }
  for (const time of host.querySelectorAll("time")) {
    time.title = new Date(time.dateTime).toLocaleString();
    setText(time, clock(time.dateTime));
  }
  for (const cell of host.querySelectorAll("[data-from]")) setText(cell, cell.dataset.to ? between(cell.dataset.from, cell.dataset.to, 0) : "");
}

function endWithAgent() {
  if (document.querySelector("[data-lives]").dataset.lives === "no") poll.stop();
}

function onTrouble(error) {
  if (error || troubled) tell(error ? `The page is not fresh, trying again: ${error.message}` : "");
  troubled = Boolean(error);
}

function tell(text) {
  setText(notice, text);
  notice.hidden = !text;
}

async function goOn(button) {
  button.disabled = true;
  try {
    await api.goOn(button.dataset.session, Number(button.dataset.agent), button.dataset.goOn);
    setText(button, "It was told to go on");
    await poll.soon();
  } catch (error) {
    tell(error.message);
    button.disabled = false;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-go-on]");
  if (button) goOn(button);
});
for (const part of document.querySelectorAll("[data-part]")) written.set(part.dataset.part, part.outerHTML);
dress(document);
endWithAgent();
poll.soon();
