// What was seen before somebody was asked: files of the workspace and how the device is doing, to be opened.

import { valuesView } from "./actions.js";
import { visible } from "./command_line.js";
import { element } from "./dom.js";
import { ago, clock, plural } from "./format.js";

const FILES_SHOWN = 50; // the newest
const UNITS = ["B", "kB", "MB", "GB", "TB"];

// `observed`: {files: [{path, size, modified}], files_total, system: {name: value}, at}, or null.
export function observedView(observed) {
  if (!observed) return null;
  const { files = [], files_total: total = files.length, system, at, ...others } = observed;
  const parts = [
    ...(files.length ? [element("h4", {}, `Files, ${total}`), fileTable(files, total, at)] : []),
    ...(system ? [element("h4", {}, "System"), ...valuesView(known(system))] : []),
    ...valuesView(others),
  ];
  const summary = element("summary", {}, `What was seen${at ? ` at ${clock(at)}` : ""}, before it was asked`);
  return parts.length ? element("details", { class: "observed" }, summary, ...parts) : null;
}

function fileTable(files, total, at) {
  const rows = files.slice(0, FILES_SHOWN).map(({ path, size, modified }) => {
    const cells = [element("code", {}, visible(path)), bytes(size), modified ? before(modified, at) : ""];
    return element("tr", { title: modified || null }, ...cells.map((cell, i) => element("td", { class: i ? "number" : null }, cell)));
  });
  const rest = total - rows.length;
  const more = rest > 0 ? [element("tr", {}, element("td", { class: "note", colspan: 3 }, `and ${plural(rest, "file")} more`))] : [];
  const head = ["File", "Size", "Changed"].map((name, i) => element("th", { scope: "col", class: i ? "number" : null }, name));
  return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows, ...more));
}

function before(time, at) {
  return ago(time, Date.parse(at ?? time)).replace(/ ago$/, " before");
}

function known(values) {
  const found = Object.entries(values).filter(([, value]) => value !== null);
  return Object.fromEntries(found.map(([key, value]) => [key.replaceAll("_", " "), value]));
}

function bytes(size) {
  const unit = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, size)) / 3)));
  const amount = size / 1000 ** unit;
  return `${unit ? amount.toPrecision(3) : amount} ${UNITS[unit]}`;
}
