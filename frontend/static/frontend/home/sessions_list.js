// The list of sessions: rows kept fresh without a flicker, filters and pages in the address, saved views in this browser.

import * as api from "../api.js";
import { visible } from "../command_line.js";
import { setText } from "../dom.js";
import { ago, duration } from "../format.js";
import { Poll } from "../poll.js";
import { lookOfStanding } from "../states.js";
import { html, nothing, render, repeat } from "../vendor/lit.js";
import { chipView } from "../view_parts.js";
import { SavedViews } from "./saved_views.js";

const LOOK_MS = 2500;
const LONGEST_MS = 30_000;
const TYPED_MS = 250; // after the last letter
const PERIODS = { day: 86_400_000, week: 7 * 86_400_000, month: 30 * 86_400_000 };

export class SessionsList {
  constructor(section) {
    this.section = section;
    this.form = section.querySelector("form");
    this.body = section.querySelector("#rows");
    this.views = new SavedViews(section.querySelector(".views"), (address) => this.#goTo(address));
    this.form.addEventListener("input", () => this.#changedSoon());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    section.querySelector(".pager").addEventListener("click", (event) => this.#paged(event));
    section.addEventListener("keydown", (event) => this.#onKey(event));
    window.addEventListener("popstate", () => this.#fromAddress());
    this.poll = new Poll(() => this.#look(), { everyMs: LOOK_MS, longestMs: LONGEST_MS, onTrouble: (error) => this.#tell(error) });
    this.#fromAddress();
  }

  get #query() {
    return new URLSearchParams(location.search);
  }

  #fromAddress() {
    const query = this.#query;
    for (const field of this.form.elements) {
      if (field.type === "checkbox") field.checked = query.get(field.name) === "1";
      else if (field.name) field.value = query.get(field.name) ?? "";
    }
    this.poll.soon();
  }

  #changedSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#changed(), TYPED_MS);
  }

  #changed() {
    const query = new URLSearchParams();
    for (const [key, value] of new FormData(this.form)) if (value) query.set(key, value);
    this.#goTo(`?${query}`);
  }

  #goTo(address) {
    history.pushState(null, "", address === "?" ? location.pathname : address);
    this.#fromAddress();
  }

  #paged(event) {
    const pressed = event.target.closest("button");
    if (!pressed) return;
    const query = this.#query;
    if (pressed.value === "first") query.delete("before");
    else query.set("before", this.next);
    this.#goTo(`?${query}`);
  }

  async #look() {
    const asked = location.search;
    const found = await api.home(homeQuery(this.#query));
    if (asked !== location.search) return this.poll.soon(); // somebody has gone on meanwhile
    const now = Date.parse(found.now);
    this.next = found.next;
    render(found.results.length ? table(found.results, now) : nobody(asked), this.body);
    this.body.removeAttribute("aria-busy");
    this.section.querySelector("[value=older]").hidden = found.next === null;
    this.section.querySelector("[value=first]").hidden = !this.#query.has("before");
    this.views.show(asked);
  }

  #tell(error) {
    const notice = this.section.querySelector(".alarm");
    setText(notice, error ? `The list is not fresh, trying again: ${error.message}` : "");
    notice.hidden = !error;
  }

  // j and k, or the arrows, go from session to session.
  #onKey(event) {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!step || event.target.closest("form, .views") || event.ctrlKey || event.metaKey) return;
    const links = [...this.body.querySelectorAll("td.title a")];
    const next = links[links.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }
}

// What REST is asked for an address: a period becomes the time it begins, to the minute.
function homeQuery(query) {
  const asked = new URLSearchParams(query);
  const length = PERIODS[asked.get("period")];
  asked.delete("period");
  if (length) asked.set("since", new Date(Math.floor((Date.now() - length) / 60_000) * 60_000).toISOString());
  return asked;
}

function nobody(asked) {
  return html`<p class="note">${asked ? "No session fits." : "There are no sessions yet."}</p>`;
}

function table(rows, now) {
  return html`<table>
    <thead><tr><th scope="col">Session</th><th scope="col">State</th><th scope="col">Progress</th><th scope="col">Time</th><th scope="col">Cost</th><th scope="col">Owner</th><th scope="col">When</th></tr></thead>
    <tbody>${repeat(rows, (row) => row.id, (row) => rowView(row, now))}</tbody>
  </table>`;
}

function rowView(row, now) {
  const { id, title, owner, standing, tasks, begun_at: begun, ended_at: ended, created_at: made, cost, waits, heartbeat_at: beat } = row;
  const took = begun ? duration((ended ? Date.parse(ended) : now) - Date.parse(begun)) : "";
  const at = ended ?? begun ?? made;
  return html`<tr data-session=${id}>
    <td class="title"><a href=${`/sessions/${id}/`}>${visible(title)}</a>${waits.length ? html`<span class="note waits">${visible(waits[0])}${waits.length > 1 ? ` and ${waits.length - 1} more` : nothing}</span>` : nothing}</td>
    <td data-name="State" title=${standing.reason}>${chipView(lookOfStanding(standing))}${standing.name === "stale" && beat ? html` <span class="note stale">last sign of life ${ago(beat, now)}</span>` : nothing}</td>
    <td data-name="Progress">${progressText(tasks)}</td>
    <td data-name="Time">${took}</td>
    <td data-name="Cost">${cost ? cost.toFixed(cost < 1 ? 4 : 2) : ""}</td>
    <td data-name="Owner">${visible(owner)}</td>
    <td data-name="When"><time datetime=${at} title=${new Date(at).toLocaleString()}>${ago(at, now)}</time></td>
  </tr>`;
}

function progressText({ total, ended, failed }) {
  if (!total) return "";
  return failed ? html`${ended} of ${total}, <span class="bad">${failed} failed</span>` : html`${ended} of ${total}`;
}
