// The strip of devices under the views, kept in step: rows by the stream, slots and readings by looking now and then.

import * as api from "../api.js";
import { DeviceDialog } from "../device_dialog.js";
import { drawDevices } from "../device_strip.js";
import { Poll } from "../poll.js";

const DEVICES_MS = 5000; // between two looks at the devices' slots
const DEVICES_LONGEST_MS = 30_000; // and at most, while they fail
const SLOTS_MS = 700; // after which a start or an end of ours shows there

export class DevicesStrip {
  #timer = 0;

  constructor(host, dialog, { store, tell }) {
    Object.assign(this, { host, store, tell });
    this.poll = new Poll(() => this.#look(), { everyMs: DEVICES_MS, longestMs: DEVICES_LONGEST_MS });
    this.dialog = new DeviceDialog(dialog, { mayMake: store.config.may_make_devices, now: () => store.now(), onChange: () => this.poll.soon() });
    host.addEventListener("click", (event) => {
      const id = event.target.closest("[data-open]")?.dataset.open;
      if (id) this.openInFull(id);
    });
  }

  openInFull(id) {
    return this.dialog.open(id).catch((error) => this.tell(error.message));
  }

  start() {
    this.poll.soon();
  }

  update(changes) {
    if (changes.has("device")) this.#draw();
    if (changes.has("attempt") && this.store.isLive) this.#timer ||= setTimeout(() => this.#slotsMoved(), SLOTS_MS);
  }

  tick() {
    this.#draw();
  }

  async #look() {
    const { devices } = this.store;
    for (const device of (await api.devices()).results) devices.set(device.id, { ...devices.get(device.id), ...device });
    this.#draw();
  }

  #slotsMoved() {
    this.#timer = 0;
    this.poll.soon();
  }

  // Slots and readings lie outside the fold: of a moment of the past only the rows are known.
  #draw() {
    const { store } = this;
    const rows = [...store.devices.keys(), ...store.fold.table("device").keys()];
    const known = [...new Set(rows)].map((id) => ({ ...(store.isLive ? store.devices.get(id) : { id, name: store.deviceName(id) }), ...store.fold.get("device", id) }));
    const shown = known.filter((device) => device.name && device.state && device.state !== "retired").sort((a, b) => a.name.localeCompare(b.name));
    drawDevices(this.host, shown, store.now());
  }
}
