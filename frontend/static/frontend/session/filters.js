// Which tasks a view shows: by state, device and words, as it stands in the address and is the same for all views. Pure.
//
// A task that waits for a person is in none of its own states, but in NEEDS_YOU or NEEDS_OTHERS (standings.js).

import { isSkipped } from "../states.js";

export const NEEDS = { NEEDS_YOU: "you", NEEDS_OTHERS: "others" }; // whose decision it is, as standings.js says it

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

// Whether a task fits the state and the device of a filter; its words are for each view to look for.
export function fitsPlace(store, { state, device }, task) {
  if (device && store.placeOf(task) !== device) return false;
  return !state || shownState(store, task) === state;
}

// The state that a task is shown, counted and found in.
export function shownState({ standings }, task) {
  const need = standings.needOf(task);
  if (need) return Object.keys(NEEDS).find((state) => NEEDS[state] === need);
  return isSkipped(task) ? "SKIPPED" : task.state;
}
