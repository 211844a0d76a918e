// Which tasks a view shows: by state, device and words, as it stands in the address and is the same for all views. Pure.

import { isSkipped } from "../states.js";

export const EVERYTHING = { state: "", device: "", text: "" };

// What a filter says: "state:FAILED device:laptop some words".
export function readFilter(text) {
  const found = { ...EVERYTHING };
  const words = [];
  for (const word of (text ?? "").split(" ").filter(Boolean)) {
    const [, key, value] = /^(state|device):(.+)$/.exec(word) ?? [];
    if (key) found[key] = decodeURIComponent(value);
    else words.push(word);
  }
  return { ...found, text: words.join(" ") };
}

export function writeFilter({ state, device, text }) {
  const parts = [state && `state:${encodeURIComponent(state)}`, device && `device:${encodeURIComponent(device)}`, text.trim()];
  return parts.filter(Boolean).join(" ");
}

export function shownState(task) {
  return isSkipped(task) ? "SKIPPED" : task.state;
}
