// The page of one agent: the server writes it, this keeps it fresh while the agent lives, and gives states their looks.

import * as api from "./api.js";
import { icon, setText } from "./dom.js";
import { between, clock } from "./format.js";
import { FreshParts, counterpartOf } from "./parts.js";
import { Poll } from "./poll.js";
import { machineLook } from "./states.js";

const LOOK_MS = 2000;
const LONGEST_MS = 30_000;

const notice = document.querySelector("#notice");
let troubled = false; // what is on notice is that the page is not fresh
const poll = new Poll(look, { everyMs: LOOK_MS, longestMs: LONGEST_MS, onTrouble });

// The same page again, as long as the agent lives.
async function look() {
  await parts.look();
  endWithAgent();
}

function counterpart(part, focused) {
  const { goOn } = focused.dataset;
  return goOn ? part.querySelector(`[data-go-on="${CSS.escape(goOn)}"]`) : counterpartOf(part, focused);
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
const parts = new FreshParts({ dress, counterpart });
endWithAgent();
poll.soon();
