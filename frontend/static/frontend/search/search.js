// Search in all that the reader may see: hits by group, the place marked, further ones on demand. The text is in the address.

import * as api from "../api.js";
import { visible } from "../command_line.js";
import { setText } from "../dom.js";
import { plural } from "../format.js";
import { html, nothing, render } from "../vendor/lit.js";

const NAMES = { sessions: "Sessions", tasks: "Tasks", results: "Results", outputs: "Outputs", agents: "Agents" };

const at = (selector) => document.querySelector(selector);
const text = new URLSearchParams(location.search).get("q") ?? "";
let groups = {};

function draw() {
  const shown = Object.entries(NAMES).filter(([name]) => groups[name]?.hits.length || groups[name]?.next);
  render(shown.map(([name, title]) => groupView(name, title, groups[name])), at("#hits"));
  const count = Object.values(groups).reduce((sum, { hits }) => sum + hits.length, 0);
  const goesOn = Object.values(groups).some(({ next }) => next);
  setText(at("#said"), count ? `${plural(count, "hit")} shown${goesOn ? "; there may be more" : ""}.` : `Nothing has “${text}”${goesOn ? " among the latest rows" : ""}.`);
}

function groupView(name, title, { hits, next }) {
  return html`<section class="card" data-group=${name} aria-label=${title}>
    <h2>${title}</h2>
    <ul>${hits.map((hit) => hitView(name, hit))}</ul>
    ${next ? html`<button type="button" @click=${() => goOn(name, next)}>${hits.length ? "More" : "Look further back"}</button>` : nothing}
  </section>`;
}

function hitView(name, { id, session, task, excerpt, begins, ends, name: title }) {
  const href = name === "agents" ? `/agents/${id}/` : `/sessions/${session.id}/${task ? `#task-${task}` : ""}`;
  // Offsets count characters, as the server does, and not the halves of those outside the first plane.
  const letters = Array.from(excerpt);
  const [before, found, after] = [letters.slice(0, begins), letters.slice(begins, ends), letters.slice(ends)].map((part) => visible(part.join("")));
  return html`<li>
    <a href=${href}>${visible(title)}</a>${name === "sessions" ? nothing : html`<span class="note">in ${visible(session.title)}</span>`}
    <p class="excerpt">${before}<mark>${found}</mark>${after}</p>
  </li>`;
}

async function goOn(name, next) {
  const found = (await api.search(text, { group: name, before: next }))[name];
  groups = { ...groups, [name]: { hits: [...groups[name].hits, ...found.hits], next: found.next } };
  draw();
}

async function look() {
  setText(at("#said"), "Looking …");
  try {
    groups = await api.search(text);
    draw();
  } catch (error) {
    setText(at("#said"), "");
    setText(at("#trouble"), error.message);
    at("#trouble").hidden = false;
  }
}

at("#q").value = text;
if (text.trim()) look();
else at("#q").focus();
