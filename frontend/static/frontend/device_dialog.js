// One device in a dialog: how it is, what runs there, its history; and for who may, what is asked of it.

import * as api from "./api.js";
import { deviceForm } from "./device_form.js";
import { deviceLook, readingsOf } from "./device_strip.js";
import { chip, element } from "./dom.js";
import { ago, plural } from "./format.js";

const HISTORY_SHOWN = 50;
const ACTIONS = { connecting: ["offline"], connected: ["drain", "offline"], draining: ["undrain", "offline"], failed: ["reset"] };
const WORDS = {
  drain: ["Drain", "Nothing new begins there; what runs ends"],
  undrain: ["Undrain", "It takes work again"],
  offline: ["Take offline", "It is disconnected; what runs there is lost"],
  online: ["Bring back", "It may be connected again"],
  reset: ["Reset", "It may be connected again after it has failed"],
  retire: ["Retire", "It ends for good; its name is not given again"],
};
const SURE = new Set(["drain", "offline", "retire"]); // asked twice

export class DeviceDialog {
  // `host` is a <dialog>; `onChange()` hears that something was asked of a device.
  constructor(host, { mayMake, now, onChange }) {
    Object.assign(this, { host, mayMake, now, onChange });
    host.addEventListener("click", (event) => event.target === host && host.close());
  }

  // Shows a device as it is now, and presses the button `then` ("drain", "enrol"), which shows what would follow.
  async open(id, then = "") {
    const device = await api.device(id);
    this.#show(device.name, this.#about(device), this.#asked(device), this.#history(device), this.#tokens(device), this.#form(device));
    if (then) this.host.querySelector(`[data-ask="${then}"]`)?.click();
  }

  // Shows the form of a new one.
  make() {
    this.#show("New device", deviceForm(null, (made) => this.#saved(made)));
  }

  #show(title, ...parts) {
    const close = element("button", { type: "button", class: "close quiet", "aria-label": "Close" }, "✕");
    close.addEventListener("click", () => this.host.close());
    const heading = element("h2", { id: "device-title", tabindex: -1 }, title);
    this.notice = element("p", { class: "alarm", role: "alert", hidden: true });
    this.host.replaceChildren(element("header", {}, heading, close), this.notice, ...parts.filter(Boolean));
    if (!this.host.open) this.host.showModal();
  }

  #about(device) {
    const tasks = device.current_tasks.map((each) =>
      element("li", {}, element("a", { href: `/sessions/${each.session}/` }, each.task), ` ${each.state.toLowerCase()}`),
    );
    const facts = {
      Kind: device.kind, Platform: device.platform, System: device.os, Type: device.type,
      Capabilities: device.capabilities.join(", "), Labels: device.labels.join(", "), Tools: device.tools.map((each) => each.name).join(", "),
      Apps: Object.keys(device.apps).join(", "),
      Slots: `${device.used} of ${device.max_concurrent} taken`, Owner: device.owner, "Used by": device.used_by.join(", "),
      Offered: device.is_offered ? "to every task" : "to tasks that wish for it", Host: device.host,
      "Last heartbeat": device.last_heartbeat ? ago(device.last_heartbeat, this.now()) : "", Readings: readingsOf(device),
      Client: device.link?.version, "Dialled in from": device.link?.peer, Reason: device.reason, Commands: device.confinement,
      Facts: Object.entries(device.facts).map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(", "),
    }; // prettier-ignore
    const shown = Object.entries(facts).filter(([, value]) => value);
    return element(
      "section",
      { class: "about" },
      element("p", {}, chip(deviceLook(device)), device.is_off ? element("span", { class: "note" }, " taken offline") : null),
      element("dl", {}, ...shown.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
      tasks.length ? element("section", { class: "current" }, element("h3", {}, "Current tasks"), element("ul", {}, ...tasks)) : null,
    );
  }

  #asked(device) {
    if (!this.mayMake || device.state === "retired") return null;
    const rests = !["connected", "connecting", "draining"].includes(device.state);
    const more = rests ? [device.is_off ? "online" : "offline", "retire"] : [];
    const buttons = [...(ACTIONS[device.state] ?? []), ...more].map((what) => {
      const [word, title] = WORDS[what];
      const button = element("button", { type: "button", "data-ask": what, class: SURE.has(what) ? "danger" : null, title }, word);
      button.addEventListener("click", () => this.#ask(device, what, button));
      return button;
    });
    this.preview = element("div", { class: "preview", "aria-live": "polite" });
    return element("div", { class: "asked", role: "group", "aria-label": `Ask of ${device.name}` }, ...buttons, this.preview);
  }

  async #ask(device, what, button) {
    if (SURE.has(what) && !button.dataset.sure) {
      button.dataset.sure = "yes";
      button.textContent = `${WORDS[what][0]}: sure?`;
      if (what === "drain") await this.#guarded(button, async () => this.preview.replaceChildren(...foreseen(await api.previewDrain(device.id))));
      return;
    }
    await this.#guarded(button, async () => {
      await (what === "retire" ? api.retireDevice(device.id) : api.askDevice(device.id, what));
      this.onChange();
      await this.open(device.id);
    });
  }

  #tokens(device) {
    if (!this.mayMake || device.kind !== "remote" || device.state === "retired") return null;
    const told = element("div", { class: "told" });
    const give = (word, title, ask) => {
      const button = element("button", { type: "button", title, "data-ask": word === "Enrol" ? "enrol" : null }, word);
      button.addEventListener("click", () => this.#guarded(button, async () => told.replaceChildren(...(await ask()))));
      return button;
    };
    return element(
      "section",
      { class: "tokens" },
      element("h3", {}, "Connecting it"),
      give("Enrol", "A command that connects it, with a token for one use", async () => once((await api.enrolDevice(device.id)).token)),
      give("Rotate its token", "The earlier token is good until the new one is used", async () => once((await api.rotateToken(device.id)).token)),
      give("Revoke its tokens", "Its connection ends with them", async () => {
        await api.revokeTokens(device.id);
        return [element("p", { class: "note" }, "It has no token any more.")];
      }),
      told,
    );
  }

  #history(device) {
    const list = element("ol", { class: "history" });
    const details = element("details", {}, element("summary", {}, "History"), list);
    details.addEventListener("toggle", async () => {
      if (!details.open || list.children.length) return;
      const events = (await api.deviceHistory(device.id)).slice(-HISTORY_SHOWN).reverse();
      list.replaceChildren(...events.map((event) => element("li", {}, element("time", { datetime: event.at, title: event.at }, ago(event.at, this.now())), ` ${sentence(event)}`)));
    });
    return details;
  }

  #form(device) {
    if (!this.mayMake || device.state === "retired") return null;
    return element("details", { class: "change" }, element("summary", {}, "Change"), deviceForm(device, (saved) => this.#saved(saved)));
  }

  #saved(device) {
    this.onChange();
    this.open(device.id);
  }

  async #guarded(button, work) {
    button.disabled = true;
    try {
      await work();
      this.notice.hidden = true;
    } catch (error) {
      this.notice.textContent = error.message;
      this.notice.hidden = false;
    } finally {
      button.disabled = false;
    }
  }
}

// What would become of a drained device's work, a line for each part that has tasks.
function foreseen(preview) {
  const words = { ends: (one) => (one ? "runs there and ends there" : "run there and end there"), moves: () => "would move", nowhere: () => "would wait, with nowhere to go" };
  const parts = Object.entries(words).filter(([part]) => preview[part].total > 0);
  if (!parts.length) return [element("p", { class: "note" }, "Nothing runs or waits there.")];
  return parts.map(([part, word]) => {
    const { total, tasks } = preview[part];
    const named = tasks.map((task) => (task.to ? `${task.task_id} to ${task.to}` : task.task_id)).join(", ");
    return element("p", { class: "note", "data-part": part }, `${plural(total, "task")} ${word(total === 1)}${named ? `: ${named}` : ""}`);
  });
}

// The command that uses a token; it is shown this once.
function once(token) {
  const command = `python manage.py device --server ${location.origin} --token ${token}`;
  return [element("p", { class: "note" }, "Run this where the device is. It is shown this once."), element("code", { class: "once", tabindex: 0 }, command)];
}

// What an event of a device's stream says, and who did it.
function sentence(event) {
  const { from_state: from, to_state: to, reason, set } = event.data;
  const fields = Object.keys(Object.values(set?.device ?? {})[0] ?? {}).join(", ");
  const what = event.type === "state_changed" ? `${from} → ${to}` : event.type.replace(/^device_/, "").replaceAll("_", " ");
  const about = event.type === "device_changed" ? `: ${fields}` : "";
  return `${what}${about}${reason ? ` (${reason})` : ""}, by ${event.by_name}`;
}
