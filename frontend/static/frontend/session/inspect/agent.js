// One agent: its machine with its state lit, what it did, what was said of it, what it notes, and how it came here.

import * as api from "../../api.js";
import { html, nothing, render } from "../../vendor/lit.js";
import { between, plural } from "../../format.js";
import { machineLook } from "../../states.js";
import { MachinePicture } from "./machine.js";
import { block, chipOf, closing, folded, transitionsTable } from "./parts.js";
import { RowView } from "./row_view.js";
import { Transcript } from "./transcript.js";

const PLAN_SIGNS = { pending: "○", in_progress: "▸", completed: "✓" };
const CONCERNED = ["agent", "loop", "evidence", "model_call", "phase", "approval", "attempt"];

export class AgentView extends RowView {
  constructor(host, { store, outbox }) {
    super(host, { store, concerned: CONCERNED });
    Object.assign(this, { outbox, unfolded: new Set(), transitions: null });
    this.picture = new MachinePicture({ redraw: () => this.draw() });
    this.transcript = new Transcript({ store, redraw: () => this.draw() });
  }

  find(id) {
    return this.store.fold.get("agent", id);
  }

  open(id) {
    this.transitions = null;
    return super.open(id);
  }

  update(changes) {
    if (this.row !== null && !this.find(this.row)) return this.store.select(null);
    if (changes.ids.agent?.has(this.row)) this.transitions = null;
    super.update(changes);
  }

  tick() {
    this.draw();
  }

  draw() {
    const { fold } = this.store;
    const agent = this.row !== null && fold.get("agent", this.row);
    if (!agent) return;
    const redraw = () => this.draw();
    const loop = [...fold.table("loop").values()].find((row) => row.agent_id === agent.id);
    const notes = Object.keys(agent.blackboard ?? {}).length;
    render(
      html`<header><h2 tabindex="-1">${agent.name}</h2>${closing(this.store)}</header>
        <div class="state">${chipOf(this.store.standings.agentLook(agent), [agent.state, agent.reason].filter(Boolean).join(": "))}
          <span class="note">${between(agent.entered_at, null, this.store.now())} in this state</span>
          ${loop ? html`${chipOf(machineLook("tool_loop", loop.state), loop.reason)}` : nothing}</div>
        ${agent.reason ? html`<p class="note">${agent.reason}</p>` : nothing}
        <p>${this.#task(agent)}<a href="/agents/${agent.id}/">All of it on its page</a></p>
        ${appLine(agent.app)}
        ${this.#stuck(loop)}
        ${this.#plan(agent)}
        ${this.picture.draw(agent.machine, agent.state)}
        ${this.transcript.draw(new Set([agent.id]))}
        ${this.#waits(agent)}
        ${notes ? folded("blackboard", this.unfolded, `Blackboard, ${plural(notes, "note")}`, () => block(agent.blackboard), redraw) : nothing}
        ${folded("transitions", this.unfolded, "Transitions", () => transitionsTable(this.#history(), this.store), redraw)}`,
      this.host,
    );
  }

  #task(agent) {
    const attempt = [...this.store.fold.table("attempt").values()].findLast((one) => [agent.id, agent.parent_id].includes(one.agent_id));
    const task = attempt && this.store.fold.get("task", attempt.task_id);
    return task ? html`works on <a href="#task-${task.id}">${task.name || task.task_id}</a> · ` : nothing;
  }

  // What a coding agent says that it will do, part by part, and how far it is.
  #plan({ plan }) {
    if (!plan?.length) return nothing;
    const done = plan.filter((one) => one.status === "completed").length;
    const part = ({ content, status }) => html`<li data-status=${status}><span aria-hidden="true">${PLAN_SIGNS[status]}</span> ${content} <span class="unseen">${status.replaceAll("_", " ")}</span></li>`;
    return html`<section class="its-plan"><h3>Its plan, ${done} of ${plural(plan.length, "part")} done</h3><ol>${plan.map(part)}</ol></section>`;
  }

  // The last verdict in words, unless something went well since.
  #stuck(loop) {
    if (!loop) return nothing;
    const rows = [...this.store.fold.table("evidence").values()].filter((row) => row.loop_id === loop.id);
    const at = rows.findLastIndex((row) => ["steer", "halt"].includes(row.verdict?.action));
    if (at < 0 || rows.slice(at + 1).some((row) => row.success)) return nothing;
    const { verdict } = rows[at];
    const agent = this.store.fold.get("agent", this.row);
    const goOn = () => this.#goOn(agent, verdict.identity);
    return html`<div class="verdict" role="status"><strong>Stuck</strong> <p>${verdict.sentence}</p>
      <p class="note">rule <code>${verdict.rule}</code></p>
      ${this.store.config.may_operate && this.store.isLive && verdict.action === "steer" ? html`<button type="button" @click=${goOn}>Go on anyway</button>` : nothing}</div>`;
  }

  #goOn(agent, identity) {
    return this.outbox.send("Go on", (id) => api.goOn(this.store.config.session, agent.id, identity, id));
  }

  #waits(agent) {
    const rows = [...this.store.fold.table("approval").values()].filter((row) => row.agent_id === agent.id && row.state === "waiting");
    return rows.length ? html`<section><h3>Waits for</h3><ul>${rows.map((row) => html`<li><a href="#approval-${row.id}">${row.title}</a></li>`)}</ul></section>` : nothing;
  }

  #history() {
    if (this.transitions === null) this.#read();
    return this.transitions === "reading" ? null : this.transitions;
  }

  async #read() {
    const { row } = this;
    this.transitions = "reading";
    const { results } = await api.transitionsOf("agents", row).catch(() => ({ results: [] }));
    if (row !== this.row) return;
    this.transitions = results;
    this.draw();
  }
}

// What an app agent is held to: its app, the process that is, and what it is offered.
function appLine(app) {
  if (!app?.name) return nothing;
  const process = app.process.pid ? `${app.process.name}, process ${app.process.pid}` : app.process.name;
  const more = [app.visual ? "" : "without pictures", app.tools.length ? `only ${app.tools.join(", ")}` : ""].filter(Boolean);
  return html`<p class="note app">App <code>${app.name}</code> · ${[process, ...more].join(" · ")}</p>`;
}
