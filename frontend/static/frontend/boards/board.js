// Pages of tables that the server writes: kept fresh, times as ages, charts drawn from the tables beside them.

import * as api from "../api.js";
import { icon, setText } from "../dom.js";
import { ago, duration } from "../format.js";
import { FreshParts } from "../parts.js";
import { Poll } from "../poll.js";
import { lookOf } from "../states.js";
import { drawDays } from "./days_chart.js";

const LOOK_MS = 5000;
const LONGEST_MS = 60_000;

const notice = document.querySelector("#notice");
let skew = 0; // server's clock minus ours
const parts = new FreshParts({ dress });
const poll = new Poll(() => parts.look(), { everyMs: LOOK_MS, longestMs: LONGEST_MS, onTrouble });

function dress(host) {
  const at = host.dataset.at ?? host.querySelector("[data-at]")?.dataset.at;
  if (at) skew = Date.parse(at) - Date.now();
  for (const chip of host.querySelectorAll(".chip[data-look]")) {
    const look = lookOf(chip.dataset.look, chip.dataset.state);
    chip.dataset.tone = look.tone;
    if (!chip.querySelector("svg")) chip.prepend(icon(look.shape));
  }
  for (const time of host.querySelectorAll("time[datetime]")) {
    time.title = new Date(time.dateTime).toLocaleString();
    setText(time, timeInWords(time.dateTime, Date.now() + skew));
  }
  for (const chart of host.querySelectorAll("[data-days]")) drawDays(chart, host.querySelector(`#${chart.dataset.days}`));
}

function timeInWords(iso, now) {
  const ahead = Date.parse(iso) - now;
  return ahead > 1000 ? `in ${duration(ahead)}` : ago(iso, now);
}

function onTrouble(error) {
  setText(notice, error ? `The page is not fresh, trying again: ${error.message}` : "");
  notice.hidden = !error;
}

// A label of a run that somebody looked at: sent as the form is, and the page is asked for again.
async function label(form, submitter) {
  const said = new FormData(form, submitter);
  const stuck = said.get("stuck") === "yes";
  try {
    await api.labelAgent(form.dataset.agent, { stuck, reason: said.get("reason"), ...(stuck ? { since: Number(said.get("since")) } : {}) });
    await poll.soon();
  } catch (error) {
    onTrouble(error);
  }
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-agent]")) return;
  event.preventDefault();
  label(event.target, event.submitter);
});
poll.soon();
