// The devices as cards: slots, queue, what runs there, load, and what can be asked of each.

import { deviceReadings } from "./api.js";
import { deviceLook, readingsOf } from "./device_strip.js";
import { ago, plural } from "./format.js";
import { LoadChart } from "./load_chart.js";
import { machineLook } from "./states.js";
import { html, nothing, render, repeat } from "./vendor/lit.js";
import { chipView } from "./view_parts.js";

const SLOTS_DRAWN = 24; // of a device with more a meter says it
const TASKS_SHOWN = 5;

export class DeviceCards {
  constructor(list, { mayMake, now }) {
    Object.assign(this, { list, mayMake, now });
    this.charts = new Map();
    this.seen = new IntersectionObserver((cards) => cards.filter((card) => card.isIntersecting).forEach((card) => this.#begin(card.target)));
  }

  draw(devices) {
    render(repeat(devices, (device) => device.id, (device) => this.#card(device)), this.list);
    for (const device of devices) {
      if (!this.charts.has(device.id)) {
        const host = this.list.querySelector(`[data-load="${device.id}"]`);
        this.charts.set(device.id, new LoadChart(host));
        this.seen.observe(host.parentElement);
      }
      this.charts.get(device.id).add(device, this.now());
    }
    for (const id of this.charts.keys()) if (!devices.some((device) => device.id === id)) this.charts.delete(id);
  }

  // Asked for when the card comes into view: of many devices few are looked at.
  async #begin(card) {
    this.seen.unobserve(card);
    const id = Number(card.querySelector("[data-load]").dataset.load);
    try {
      this.charts.get(id)?.begin((await deviceReadings(id)).results);
    } catch {
      this.seen.observe(card); // the chart begins with the page until the card comes into view again
    }
  }

  #card(device) {
    const look = deviceLook(device);
    const about = [device.kind, device.type, ...(device.labels ?? []), device.confinement?.startsWith("not confined") ? "not confined" : ""];
    return html`<li data-device=${device.name} data-tone=${look.tone} data-state=${device.state}>
      <header>
        <h2><button type="button" class="link name" data-open=${device.id} aria-haspopup="dialog">${device.name}</button></h2>
        ${chipView(look, device.reason || null)}
      </header>
      <p class="note">${about.filter(Boolean).join(" · ")}${device.is_off ? " · taken offline" : nothing}</p>
      <div class="slots">${slots(device)}<span>${device.used}/${device.max_concurrent} slots taken</span>${device.queued ? html`<span class="waits">${waiting(device)}</span>` : nothing}</div>
      ${tasks(device)}
      <div class="load" data-load=${device.id} hidden></div>
      <footer class="note">
        <span>${[readingsOf(device), device.last_heartbeat ? `heard ${ago(device.last_heartbeat, this.now())}` : ""].filter(Boolean).join(" · ")}</span>
        ${this.#offers(device)}
      </footer>
    </li>`;
  }

  // What is asked most; the dialog has all of it, and asks twice.
  #offers(device) {
    if (!this.mayMake) return nothing;
    return html`${device.state === "connected" ? html`<button type="button" data-open=${device.id} data-then="drain">Drain…</button>` : nothing}
      ${device.kind === "remote" ? html`<button type="button" data-open=${device.id} data-then="enrol">Enrol…</button>` : nothing}`;
  }
}

function waiting({ queued, state }) {
  return `${plural(queued, "task")} ${queued === 1 ? "waits" : "wait"} for ${state === "connected" ? "a slot" : "it"}`;
}

function slots({ used, max_concurrent: all, name }) {
  if (all > SLOTS_DRAWN) return html`<meter min="0" max=${all} value=${used} aria-label=${`slots of ${name} taken`}></meter>`;
  return html`<span class="boxes" aria-hidden="true">${Array.from({ length: all }, (_, i) => html`<i ?data-taken=${i < used}></i>`)}</span>`;
}

function tasks({ current_tasks: tasks }) {
  if (!tasks.length) return nothing;
  const more = tasks.length - TASKS_SHOWN;
  return html`<ul class="current">${tasks.slice(0, TASKS_SHOWN).map((each) => html`<li><a href=${`/sessions/${each.session}/`}>${each.task}</a> <span class="note">${machineLook("device_agent", each.state).word.toLowerCase()}</span></li>`)}
    ${more > 0 ? html`<li class="note">and ${more} more</li>` : nothing}</ul>`;
}
