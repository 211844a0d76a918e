// The strip of devices: how each of them is, at a glance; a click opens it (device_dialog.js).

import { element, icon } from "./dom.js";
import { ago } from "./format.js";
import { lookOf } from "./states.js";

const NOT_CONFINED = "not confined"; // how a device begins to say so, and there it is worth more than a title
const HELD_ELSEWHERE = new Set(["remote", "mcp", "acp", "browser"]); // kinds whose connection can be lost by itself

// {word, tone, shape} of a device: in the place of connected whether it is idle or busy, by its slots.
export function deviceLook(device) {
  if (device.state !== "connected") return lookOf("device", device.state);
  return lookOf("device", device.used ? "busy" : "idle");
}

// "memory 41%, disk 12%", as it said with its last heartbeat.
export function readingsOf(device) {
  const numbers = Object.entries(device.link?.readings ?? {}).filter(([, value]) => typeof value === "number");
  return numbers.map(([name, value]) => `${name.replace(/_percent$/, "").replaceAll("_", " ")} ${Math.round(value)}%`).join(", ");
}

// Writes the strip anew; whoever stood on a device with the keyboard stays there.
export function drawDevices(list, devices, now) {
  const stood = list.contains(document.activeElement) ? document.activeElement.dataset.open : null;
  list.replaceChildren(...devices.map((device) => drawDevice(device, now)));
  if (stood) list.querySelector(`[data-open="${stood}"]`)?.focus();
}

function drawDevice(device, now) {
  const look = deviceLook(device);
  const used = Math.min(device.used ?? 0, device.max_concurrent);
  const heard = HELD_ELSEWHERE.has(device.kind) && device.last_heartbeat ? ago(device.last_heartbeat, now) : "";
  return element(
    "li",
    { "data-device": device.name, "data-tone": look.tone, "data-state": device.state, title: about(device, look) },
    icon(look.shape, look.word),
    element("button", { type: "button", class: "link name", "data-open": device.id, "aria-haspopup": "dialog" }, device.name),
    ...(device.kind === "local" ? [] : [element("span", { class: "note" }, device.kind)]),
    ...(device.labels ?? []).map((label) => element("span", { class: "note", "data-label": label }, label)),
    element("meter", { min: 0, max: device.max_concurrent, value: used, "aria-label": `slots of ${device.name} taken` }),
    element("span", { class: "note" }, `${used}/${device.max_concurrent}${device.queued ? `, ${device.queued.toLocaleString("en")} ${device.queued === 1 ? "waits" : "wait"}` : ""}`),
    ...(heard ? [element("span", { class: "note heard" }, heard)] : []),
    ...(device.confinement?.startsWith(NOT_CONFINED) ? [element("span", { class: "note" }, NOT_CONFINED)] : []),
  );
}

function about(device, look) {
  const labels = device.labels?.length ? `labels ${device.labels.join(" ")}` : "";
  const tasks = device.current_tasks?.length ? `runs ${device.current_tasks.map((each) => each.task).join(", ")}` : "";
  const off = device.is_off ? "taken offline" : "";
  return [look.word, off, device.reason, device.type, labels, readingsOf(device), tasks, device.confinement].filter(Boolean).join(", ");
}
