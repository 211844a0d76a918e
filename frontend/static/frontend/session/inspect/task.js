// One task in full: how it stands and why, what can be asked of it, its steps, dependencies, attempts, output and history.

import * as api from "../../api.js";
import { drawArtifacts } from "../../artifacts.js";
import { callLine } from "../../command_line.js";
import { ago, between, clock, plural } from "../../format.js";
import { PRIORITIES, TASK_ENDED, attemptsMade, dependencyState, isChangeable, lookOf, reasonWords } from "../../states.js";
import { drawProgressOf, progressOf } from "../../task_progress.js";
import { html, nothing, render, repeat } from "../../vendor/lit.js";
import { askBefore } from "../asking.js";
import { Pace } from "../pace.js";
import { OutputTail } from "./output.js";
import { block, chipOf, closing, folded, transitionsTable } from "./parts.js";
import { Transcript, familyOf } from "./transcript.js";

const CONCERNED = ["attempt", "dependency", "phase", "approval", "artifact", "evidence", "model_call"];
const WAITS = new Set(["WAITING_DEPENDENCY", "PENDING"]);
const DEPENDENCY_WORDS = { held: "✓ holds", never: "✕ can never hold", open: "open" };

export class TaskView {
  #opener = null;
  #pace = new Pace();
  #whyOf = ""; // the standing that `why` is about

  constructor(host, { store, outbox, inPlace }) {
    Object.assign(this, { host, store, outbox, inPlace, node: host, row: null, unfolded: new Set(), why: null, history: null });
    this.transcript = new Transcript({ store, redraw: () => this.draw() });
    this.printed = new OutputTail({ store, redraw: () => this.draw() });
    host.addEventListener("keydown", (event) => event.key === "Escape" && store.select(null));
    inPlace.editing.listen(() => this.draw());
  }

  open(row) {
    if (!this.store.fold.get("task", row)) return false;
    if (!this.host.contains(document.activeElement)) this.#opener = document.activeElement;
    Object.assign(this, { row, why: null, history: null });
    this.#whyOf = "";
    this.host.hidden = false;
    this.printed.follow(row);
    this.draw();
    this.host.querySelector("h2").focus();
    return true;
  }

  close() {
    if (this.host.hidden) return;
    const hadFocus = this.host.contains(document.activeElement); // else it was closed by what happened elsewhere
    this.host.hidden = true;
    this.printed.stop();
    this.row = null;
    if (hadFocus) this.#opener?.focus?.();
  }

  update(changes) {
    if (this.row === null) return;
    if (!this.store.fold.get("task", this.row)) this.store.select(null);
    else if (changes.ids.task?.has(this.row) || changes.has(...CONCERNED)) this.#pace.isDue = true;
    if (changes.ids.task?.has(this.row)) this.history = null;
  }

  frame(time) {
    if (this.#pace.takes(time)) this.draw();
  }

  tick() {
    this.#pace.isDue = true;
  }

  truthChanged() {
    this.draw();
  }

  // While something of it is pressed all stays where it is: a line that comes above a button would take the button from under
  // the pointer, and the click would be lost. frame() makes up for it.
  draw() {
    this.#pace.isDue = this.host.matches(":active");
    if (this.#pace.isDue) return;
    const { fold } = this.store;
    const task = this.row !== null && fold.get("task", this.row);
    if (!task) return;
    this.#askWhy(task);
    const attempts = this.#attempts();
    const agent = attempts[0]?.agent_id;
    render(
      html`<header><h2 tabindex="-1">${task.name || task.task_id}</h2>${closing(this.store)}</header>
        <div class="state">${chipOf(this.store.standings.taskLook(task))}${task.reason ? html`<span class="note" title=${task.reason}>${reasonWords(task.reason)}</span>` : nothing}</div>
        ${this.why ? html`<p class="why" role="status">${this.why}</p>` : nothing}
        ${this.#commands(task)}
        ${task.description ? html`<p class="description">${task.description}</p>` : nothing}
        ${task.error ? html`<section class="error"><h3>Error</h3>${block(task.error)}</section>` : nothing}
        ${task.result === null ? nothing : html`<section class="answer"><h3>Result</h3>${block(task.result)}</section>`}
        <section class="working"></section>
        <dl class="fields">${this.#fields(task, agent)}</dl>
        ${agent ? this.transcript.draw(familyOf(fold, agent)) : nothing}
        ${this.#approvals(task)}
        ${this.#dependencies(task)}
        ${attempts.length ? this.#attemptTable(attempts) : nothing}
        <section class="artifacts"><h3>Artifacts</h3><ul></ul></section>
        ${this.printed.draw()}
        ${folded("history", this.unfolded, "History", () => transitionsTable(this.#transitions(), this.store), () => this.draw())}`,
      this.host,
    );
    drawProgressOf(this.host.querySelector(".working"), progressOf(fold, task));
    drawArtifacts(this.host.querySelector(".artifacts"), fold, attempts);
  }

  #commands(task) {
    const { editing } = this.inPlace;
    if (!editing.isAllowed) return nothing;
    const ended = TASK_ENDED.has(task.state);
    const waits = WAITS.has(task.state);
    const mayChange = isChangeable(task);
    return html`<div class="commands" role="group" aria-label="What to do with it">
      ${ended && task.state !== "COMPLETED" ? html`<button type="button" data-command="retry" @click=${() => this.#retry(task)}>Retry</button>` : nothing}
      ${mayChange ? html`<button type="button" data-command="edit" @click=${() => this.inPlace.change(task)}>Edit</button>` : nothing}
      ${waits ? html`<button type="button" data-command="skip" @click=${() => this.#end(task, "skip")}>Skip…</button>` : nothing}
      ${mayChange ? html`<button type="button" data-command="remove" @click=${() => this.inPlace.remove(task)}>Remove</button>` : nothing}
      ${ended ? nothing : html`<button type="button" data-command="cancel" class="danger" @click=${() => this.#end(task, "cancel")}>Cancel…</button>`}
      ${this.#connecting(task)}
    </div>`;
  }

  #connecting(task) {
    const others = this.#connectable(task);
    if (!others.length) return nothing;
    return html`<label class="connect">Let another wait for it
        <input list="connectable" placeholder="a task's id" autocomplete="off" @change=${(event) => this.#connect(task, event.target)}>
      </label>
      <datalist id="connectable">${others.map((one) => html`<option value=${one.task_id}>${one.name}</option>`)}</datalist>`;
  }

  // Tasks that may still be made to wait for this one.
  #connectable(task) {
    return this.store.rowsOf("task").filter((one) => one.id !== task.id && WAITS.has(one.state));
  }

  #connect(task, input) {
    const other = this.#connectable(task).find((one) => one.task_id === input.value.trim());
    input.setCustomValidity(other ? "" : "No task of that id can still be changed.");
    input.reportValidity();
    if (!other) return;
    this.inPlace.connect(task, other);
    input.value = "";
  }

  #retry(task) {
    const stands = () => `${this.store.present.get("task", task.id)?.state} ${this.store.present.get("task", task.id)?.attempt}`;
    return this.outbox.send("Retry", (id) => api.retryTask(task.id, id), stands);
  }

  async #end(task, what) {
    const name = task.name || task.task_id;
    const text = { skip: "What needs its success is skipped with it.", cancel: "If it runs it is stopped. What needs its success is skipped." }[what];
    const asked = await askBefore({ title: `${what === "skip" ? "Skip" : "Cancel"} ${name}?`, text, verb: `${what === "skip" ? "Skip" : "Cancel"} it`, wantsReason: true, isDangerous: true });
    if (!asked) return;
    const reason = asked.reason || "asked for on the page";
    await this.outbox.send(what === "skip" ? "Skip" : "Cancel", (id) => api.endTask(task.id, what, reason, id));
  }

  // Asks the server once for each way in which it stands.
  async #askWhy(task) {
    const { row, store } = this;
    const waiting = [...store.fold.table("approval").values()].filter((one) => one.subject_id === row && one.state === "waiting").map((one) => one.id);
    const stands = `${row} ${task.state} ${task.retry_at} ${waiting} ${store.isLive}`;
    if (this.#whyOf === stands) return;
    this.#whyOf = stands;
    this.why = null;
    if (!store.isLive || TASK_ENDED.has(task.state) || (task.state === "RUNNING" && !waiting.length)) return;
    const { text } = await api.whyWaiting(row).catch(() => ({ text: null }));
    if (this.#whyOf !== stands) return;
    this.why = text;
    this.draw();
  }

  #fields(task, agent) {
    const earlier = task.attempts_before ? `, and ${task.attempts_before} earlier` : "";
    const fields = {
      task: task.task_id,
      device: task.device_id ? html`<a href=${`#device-${task.device_id}`}>${this.store.placeOf(task)}</a>` : this.store.placeOf(task),
      command: commandOf(task),
      agent: agent ? html`<a href="/agents/${agent}/">what it does</a> · <a href="#agent-${agent}">its machine</a>` : "",
      priority: PRIORITIES[task.priority]?.toLowerCase(),
      attempt: task.attempt ? `${attemptsMade(task)} of ${task.max_attempts}${earlier}` : "",
      timeout: task.timeout ? `${task.timeout} s` : "",
      deadline: task.deadline ? `${task.deadline} s` : "",
      started: task.started_at ? clock(task.started_at) : "",
      [task.ended_at ? "took" : "elapsed"]: between(task.started_at, task.ended_at, this.store.now()),
      "tried again": task.retry_at && task.state === "PENDING" ? `at ${clock(task.retry_at)}` : "",
      "when lost": task.on_lost === "retry" ? "" : task.on_lost,
      gate: task.confirm ? "needs an approval" : "",
      "in the place of": task.replaces,
      "last changed": this.#lastEdit(task),
      labels: (task.labels ?? []).join(", "),
      tips: (task.tips ?? []).join("; "),
    };
    const shown = Object.entries(fields).filter(([, value]) => value);
    return repeat(shown, ([key]) => key, ([key, value]) => html`<dt>${key}</dt><dd data-field=${key}>${value}</dd>`);
  }

  #approvals(task) {
    const rows = [...this.store.fold.table("approval").values()].filter((one) => one.subject_id === task.id);
    if (!rows.length) return nothing;
    const line = (one) => html`<li><a href=${`#approval-${one.id}`}>${one.title}</a> <span class="note">${one.state}${one.decided_by ? ` by ${this.store.personOf(one.decided_by)}` : ""}</span></li>`;
    return html`<section class="approvals"><h3>Approvals</h3><ul>${rows.map(line)}</ul></section>`;
  }

  // The newest edit that did something to it.
  #lastEdit(task) {
    const edit = this.store.rowsOf("edit").findLast((one) => one.diff?.some((entry) => entry.task === task.task_id));
    return edit ? html`by <a href=${`#edit-${edit.id}`}>${this.store.personOf(edit.author)}</a>, ${ago(edit.at, this.store.now())}` : "";
  }

  #dependencies(task) {
    const rows = [...this.store.fold.table("dependency").values()];
    const into = rows.filter((one) => one.downstream_id === task.id).map((one) => this.#dependency(one, one.upstream_id, "after"));
    const out = rows.filter((one) => one.upstream_id === task.id).map((one) => this.#dependency(one, one.downstream_id, "before"));
    if (!into.length && !out.length) return nothing;
    return html`<section class="dependencies"><h3>Dependencies</h3><ul>${into}${out}</ul></section>`;
  }

  #dependency(one, other, word) {
    const [up, down, task] = [one.upstream_id, one.downstream_id, other].map((id) => this.store.fold.get("task", id));
    if (!up || !down) return nothing;
    const state = dependencyState(one, up, down);
    const what = one.type === "CONDITIONAL" ? one.condition : one.type.toLowerCase().replaceAll("_", " ");
    const mayCut = this.inPlace.editing.isAllowed && WAITS.has(down.state);
    const cut = () => this.inPlace.disconnect(up, down);
    const change = () => this.inPlace.changeTie(up, down);
    return html`<li data-state=${state}>${word}
      <button type="button" class="link" data-row=${other} @click=${() => this.store.select({ kind: "task", id: other })}>${task.name || task.task_id}</button>
      <span class="note"> ${what} · ${DEPENDENCY_WORDS[state]}</span>
      ${mayCut ? html`<button type="button" class="link" aria-label=${`Change how ${down.task_id} waits for ${up.task_id}`} @click=${change}>change</button>` : nothing}
      ${mayCut ? html`<button type="button" class="link" aria-label=${`Cut: ${down.task_id} no longer waits for ${up.task_id}`} @click=${cut}>cut</button>` : nothing}
    </li>`;
  }

  #attempts() {
    return [...this.store.fold.table("attempt").values()].filter((one) => one.task_id === this.row).sort((a, b) => b.id - a.id);
  }

  #attemptTable(attempts) {
    return html`<section class="attempts"><h3>Attempts</h3>
      <table><thead><tr><th scope="col">#</th><th scope="col">Outcome</th><th scope="col">Exit</th><th scope="col">Start</th><th scope="col">Took</th></tr></thead>
      <tbody>${attempts.map((one) => html`<tr title=${one.error || nothing}><td>${one.number}</td><td>${chipOf(lookOf("outcome", one.outcome || "running"))}</td>
        <td>${one.exit_code ?? ""}</td><td>${clock(one.started_at)}</td><td>${between(one.started_at, one.ended_at, this.store.now())}</td></tr>`)}</tbody></table>
    </section>`;
  }

  #transitions() {
    if (this.history === null) this.#read();
    return this.history === "reading" ? null : this.history;
  }

  async #read() {
    const { row } = this;
    this.history = "reading";
    const { results } = await api.transitionsOf("tasks", row).catch(() => ({ results: [] }));
    if (row !== this.row) return;
    this.history = results;
    this.draw();
  }
}

function commandOf(task) {
  const phases = task.phases ?? [];
  const steps = phases.reduce((count, phase) => count + (phase.steps?.length ?? 0), 0);
  if (phases.length) return `${plural(steps, "step")}${phases.length > 1 ? ` in ${plural(phases.length, "phase")}` : ""}`;
  return task.tool ? callLine(task.tool, task.arguments) : "in words alone; it needs a model or a command";
}
