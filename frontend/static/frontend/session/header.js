// The head of the page, one row that stays: the plan's name, how the session stands, how far it is, and what can be asked of it.

import * as api from "../api.js";
import { newest } from "../fold.js";
import { html, nothing, render } from "../vendor/lit.js";
import { between, plural } from "../format.js";
import { Pace } from "./pace.js";
import { tally } from "./panels.js";
import { lookOf, lookOfStanding, shapePath } from "../states.js";
import { askBefore } from "./asking.js";

const OPEN = new Set(["CREATED", "READY", "EXECUTING", "PAUSED"]);

export class Header {
  #pace = new Pace();

  constructor(host, { store, truth, outbox }) {
    Object.assign(this, { host, store, truth, outbox });
  }

  get actor() {
    return newest(this.store.fold.table("actor"));
  }

  get constellation() {
    return this.store.fold.get("constellation", this.store.constellation);
  }

  update() {
    this.#pace.isDue = true;
  }

  show() {
    this.draw();
  }

  named() {
    this.draw();
  }

  tick() {
    this.#pace.isDue = true;
  }

  frame(time) {
    if (this.#pace.takes(time)) this.draw();
  }

  draw() {
    this.#pace.isDue = false;
    const { constellation, store } = this;
    const counts = tally(store);
    render(
      html`<h1>${store.config.title || constellation?.name || store.config.label}</h1>
        ${store.config.title && constellation?.name && constellation.name !== store.config.title ? html`<span class="note plan">${constellation.name}</span>` : nothing}
        <div id="actor" role="group" aria-label="The session">
          <span class="state">${this.#standing()}</span>
          ${this.actor?.pausing && this.actor.state !== "paused" ? html`<span class="note">pausing…</span>` : nothing}
          ${this.#commands(counts)}
        </div>
        <span class="note elapsed" title="Since it began">${constellation ? between(constellation.created_at, constellation.ended_at, store.now()) : nothing}</span>
        <span class="note done">${progressText(counts)}</span>
        <span class="note version">${this.#version()}</span>`,
      this.host,
    );
  }

  #standing() {
    const { word, tone, shape, reason, name } = this.store.isLive ? this.#standingNow() : this.store.standings.session();
    const why = name === "stale" ? html`<span class="note">${reason}</span>` : nothing;
    return html`<span class="chip" data-tone=${tone} title=${reason || nothing}>${icon(shape)}${word}</span>${why}`;
  }

  // What the server said last, as long as it is known to be so.
  #standingNow() {
    const { isFresh, standing } = this.truth;
    if (isFresh && standing) return { ...standing, ...lookOfStanding(standing) };
    return { ...lookOf("standing", "unknown"), reason: standing ? `It was: ${standing.word}` : "" };
  }

  #version() {
    const { constellation, store } = this;
    if (!constellation) return nothing;
    const edit = newest(store.fold.table("edit"), (row) => row.constellation_id === constellation.id);
    const by = edit ? html`, last edited by <button type="button" class="link" @click=${() => store.select({ kind: "edit", id: edit.id })}>${store.personOf(edit.author)}</button>` : nothing;
    return html`version ${constellation.version}${by}`;
  }

  #commands(counts) {
    if (!this.store.config.may_operate || !this.store.isLive) return nothing;
    const choices = this.actor ? (this.store.config.actor_choices[this.actor.state] ?? []) : [];
    const failed = counts.counts.FAILED;
    const retry = () => this.#retry();
    const turn = ["Pause", "Resume"].find((name) => choices.includes(name)); // one button, so that it keeps the focus
    return html`
      ${turn ? html`<button data-command=${turn.toLowerCase()} @click=${() => this.#ask(turn, turn.toLowerCase())}>${turn}</button>` : nothing}
      ${failed ? html`<button data-command="retry" @click=${retry}>Retry ${plural(failed, "failed task")}</button>` : nothing}
      <details class="menu">
        <summary aria-label="More commands">More</summary>
        <div class="choices">
          ${this.constellation ? html`<button @click=${() => this.#fork()}>Fork from here…</button>` : nothing}
          ${this.constellation && OPEN.has(this.constellation.state) ? html`<button @click=${() => this.#restart()}>Restart…</button>` : nothing}
          ${this.store.config.admin && this.constellation ? html`<a id="edit" href=${this.store.config.admin.replace("/0/", `/${this.constellation.id}/`)}>Open in the admin</a>` : nothing}
          ${choices.includes("Cancel") ? html`<button data-command="cancel" class="danger" @click=${() => this.#cancel()}>Cancel…</button>` : nothing}
        </div>
      </details>`;
  }

  #ask(name, kind) {
    const { session } = this.store.config;
    return this.outbox.send(name, (id) => api.sendCommand(session, kind, "", id), () => String(this.actor?.state));
  }

  #retry() {
    const { id } = this.constellation;
    const failed = () => `${this.constellation?.version} ${tally(this.store).counts.FAILED}`;
    return this.outbox.send("Retry", (client) => api.retryFailed(id, client), failed);
  }

  async #cancel() {
    const asked = await askBefore({
      title: "Cancel this session?",
      text: "Tasks that run are stopped, and those that wait never begin. What has ended stays as it is.",
      verb: "Cancel the session",
      wantsReason: true,
      isDangerous: true,
    });
    if (!asked) return;
    const reason = asked.reason || "cancelled in the dashboard";
    await this.outbox.send("Cancel", (id) => api.sendCommand(this.store.config.session, "cancel", reason, id));
  }

  async #restart() {
    const asked = await askBefore({
      title: "Start over?",
      text: "What runs is stopped, and the plan begins anew as a constellation of its own. The old one stays to be read.",
      verb: "Restart",
      wantsReason: true,
      isDangerous: true,
    });
    if (asked) await this.outbox.send("Restart", (id) => api.restartConstellation(this.constellation.id, asked.reason, id));
  }

  async #fork() {
    const { store } = this;
    const asked = await askBefore({
      title: store.isLive ? "Fork from now?" : "Fork from this moment?",
      text: `A new session goes on from the graph as it was after event ${store.fold.seq}. This one is not changed.`,
      verb: "Fork",
    });
    if (!asked) return;
    const seq = store.fold.seq;
    const forked = async (id) => location.assign(`/sessions/${(await api.forkConstellation(this.constellation.id, seq, id)).session}/`);
    await this.outbox.send("Fork", forked, () => ""); // what has been stays as it was
  }
}

// "3 of 6, 1 failed"
export function progressText({ counts, total, ended }) {
  if (!total) return "no tasks yet";
  const failed = counts.FAILED ? `, ${counts.FAILED.toLocaleString("en")} failed` : "";
  return `${ended.toLocaleString("en")} of ${total.toLocaleString("en")}${failed}`;
}

function icon(shape) {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${shapePath(shape)}></path></svg>`;
}
