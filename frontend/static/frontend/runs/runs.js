// Runs of one plan side by side: the list of plans, and the grid of one, runs by tasks. The plan is in the address.

import * as api from "../api.js";
import { visible } from "../command_line.js";
import { setText } from "../dom.js";
import { ago, duration, plural } from "../format.js";
import { isSkipped, lookOf } from "../states.js";
import { html, nothing, render } from "../vendor/lit.js";
import { chipView } from "../view_parts.js";
import { CellDialog } from "./cell_dialog.js";

const at = (selector) => document.querySelector(selector);
const plan = new URLSearchParams(location.search).get("plan");
const dialog = new CellDialog(at("#cell"));

function plansView({ results }) {
  if (!results.length) return html`<div class="card"><h1>Runs</h1><p class="note">Nothing has run yet.</p></div>`;
  return html`<div class="card">
    <h1>Runs, by their plans</h1>
    <ul class="plans">${results.map(planItem)}</ul>
  </div>`;
}

function planItem({ plan: key, name, runs, states, latest }) {
  const counts = Object.entries(states).map(([state, count]) => {
    const look = lookOf("constellation", state);
    return chipView({ ...look, word: `${count} ${look.word.toLowerCase()}` });
  });
  return html`<li><a href=${`?plan=${key}`}>${visible(name)}</a><span>${plural(runs, "run")}</span><span class="states">${counts}</span>
    <time datetime=${latest.at} title=${new Date(latest.at).toLocaleString()}>${ago(latest.at, Date.now())}</time></li>`;
}

function gridView(grid) {
  return html`<div class="card">
    <h1><a href="?">Runs</a> of ${visible(grid.name)}</h1>
    <p class="note">The newest first. A mark shows a result that differs from that of the run to its right; a click shows both.</p>
    <div class="grid" tabindex="0" role="group" aria-label="Runs by tasks"><table>
      <thead><tr><th scope="col">Task</th>${grid.runs.map(columnView)}</tr></thead>
      <tbody>${grid.tasks.map((task) => rowView(grid, task))}</tbody>
    </table></div>
  </div>`;
}

function columnView({ session, state, created_at: at, duration_s: seconds, cost, forked_from: forked, replaces }) {
  const came = forked ? "fork" : replaces ? "restart" : "";
  return html`<th scope="col">
    <a href=${`/sessions/${session.id}/`}>${visible(session.title)}</a>
    <span>${chipView(lookOf("constellation", state))}</span>
    <span class="note">${[ago(at, Date.now()), seconds === null ? "" : duration(seconds * 1000), costText(cost), came].filter(Boolean).join(" · ")}</span>
  </th>`;
}

function rowView(grid, { task_id: taskId, name, cells }) {
  return html`<tr><th scope="row"><span>${visible(name || taskId)}</span>${name && name !== taskId ? html`<span class="note">${visible(taskId)}</span>` : nothing}</th>
    ${cells.map((cell, place) => (cell ? cellView(grid, taskId, cells, place) : html`<td class="note">not in it</td>`))}</tr>`;
}

function cellView(grid, taskId, cells, place) {
  const [cell, older] = [cells[place], cells.slice(place + 1).find(Boolean) ?? null];
  const differs = older !== null && older.result !== cell.result;
  const facts = [cell.duration_s === null ? "" : duration(cell.duration_s * 1000), cell.attempts > 1 ? plural(cell.attempts, "attempt") : "", costText(cell.cost)];
  const look = lookOf("task", isSkipped(cell) ? "SKIPPED" : cell.state);
  return html`<td><button type="button" class="cell" ?data-differs=${differs} @click=${() => dialog.open(taskId, cell, older)}>
    ${chipView(look)}<span class="note">${facts.filter(Boolean).join(" · ")}</span>${differs ? html`<span class="differs">differs</span>` : nothing}
  </button></td>`;
}

function costText(cost) {
  return cost ? cost.toFixed(cost < 1 ? 4 : 2) : "";
}

async function show() {
  try {
    render(plan ? gridView(await api.runsOf(plan)) : plansView(await api.plans()), at("#runs"));
  } catch (error) {
    setText(at("#trouble"), error.message);
    at("#trouble").hidden = false;
  }
  at("#runs").removeAttribute("aria-busy");
}

show();
