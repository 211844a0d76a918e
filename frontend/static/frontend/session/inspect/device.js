// One device as this session knows it: how it is, what of the session runs there, and what ran last.

import { deviceLook } from "../../device_strip.js";
import { between, plural } from "../../format.js";
import { taskLook } from "../../states.js";
import { html, nothing, render } from "../../vendor/lit.js";
import { chipOf, closing } from "./parts.js";
import { RowView } from "./row_view.js";

const TASKS_SHOWN = 50;

export class DeviceView extends RowView {
  // `openInFull(id)` shows all of it, also what is no matter of this session.
  constructor(host, { store, openInFull }) {
    super(host, { store, concerned: ["device", "attempt", "task"] });
    this.openInFull = openInFull;
  }

  find(id) {
    return this.store.deviceById(id);
  }

  tick() {
    this.draw();
  }

  draw() {
    const { store } = this;
    if (this.row === null) return;
    const device = { ...(store.isLive ? store.devices.get(this.row) : {}), ...store.fold.get("device", this.row) };
    const tasks = store.rowsOf("task").filter((one) => one.device_id === this.row);
    const running = tasks.filter((one) => one.state === "RUNNING");
    const ended = tasks.filter((one) => one.ended_at).sort((a, b) => b.ended_at.localeCompare(a.ended_at));
    render(
      html`<header><h2 tabindex="-1">${device.name}</h2>${closing(store)}</header>
        <div class="state">${chipOf(deviceLook(device), device.reason)}</div>
        ${device.reason ? html`<p class="note">${device.reason}</p>` : nothing}
        <dl class="fields">${this.#fields(device)}</dl>
        <button type="button" @click=${() => this.openInFull(device.id)}>All of it…</button>
        ${this.#tasks("Runs here now", running)}${this.#tasks("Has run here", ended)}`,
      this.host,
    );
  }

  #fields(device) {
    const fields = {
      kind: device.kind,
      system: [device.os, device.platform].filter(Boolean).join(", "),
      slots: device.max_concurrent ? plural(device.max_concurrent, "slot") : "",
      capabilities: (device.capabilities ?? []).join(", "),
      labels: (device.labels ?? []).join(", "),
    };
    return Object.entries(fields).filter(([, value]) => value).map(([key, value]) => html`<dt>${key}</dt><dd data-field=${key}>${value}</dd>`);
  }

  #tasks(title, tasks) {
    if (!tasks.length) return nothing;
    const more = tasks.length - TASKS_SHOWN;
    return html`<section><h3>${title}</h3><ul>${tasks.slice(0, TASKS_SHOWN).map((one) => html`<li><a href=${`#task-${one.id}`}>${one.name || one.task_id}</a>
        ${chipOf(taskLook(one))} <span class="note">${between(one.started_at, one.ended_at, this.store.now())}</span></li>`)}
      ${more > 0 ? html`<li class="note">and ${plural(more, "other")}</li>` : nothing}</ul></section>`;
  }
}
