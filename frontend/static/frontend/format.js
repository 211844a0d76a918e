// Values into words. Pure: `now` is an argument, in milliseconds.

const MAX_CUTS = 3_000; // texts whose measured length is remembered
const MAX_CUT = 60; // characters that are measured at all

export function duration(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 59.5) return `${Math.round(s)} s`;
  const minutes = Math.floor(Math.round(s) / 60);
  if (minutes < 60) return `${minutes} min ${String(Math.round(s) % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

export function between(start, end, now) {
  if (!start) return "";
  return duration((end ? Date.parse(end) : now) - Date.parse(start));
}

export function clock(iso) {
  const at = new Date(iso);
  const parts = [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0"));
  return parts.join(":");
}

const AGO = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86400, 3600, "h"],
  [Infinity, 86400, "d"],
];

export function ago(iso, now) {
  const s = Math.max(0, (now - Date.parse(iso)) / 1000);
  if (s < 5) return "just now";
  const [, unit, name] = AGO.find(([upTo]) => s < upTo);
  return `${Math.floor(s / unit)} ${name} ago`;
}

export function shorten(text, length) {
  return text.length > length ? `${text.slice(0, length - 1).trimEnd()}…` : text;
}

// A cutter for one font: (text, width in pixels) > the text, shortened where it is wider. It measures characters, each once, as
// browsers keep the shape of every text that was measured; what they save between two characters is not counted.
export function cutter(font) {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  context.font = font;
  const known = new Map();
  const widths = new Map();
  const widthOf = (character) => {
    if (!widths.has(character)) widths.set(character, context.measureText(character).width);
    return widths.get(character);
  };
  const cut = (text, width) => {
    let [room, fitting] = [width, 0];
    for (const character of text) {
      room -= widthOf(character);
      if (room < 0) return `${text.slice(0, fitting).trimEnd()}…`;
      if (room >= widthOf("…")) fitting += character.length;
    }
    return text;
  };
  return (text, width) => {
    const key = `${width} ${text}`;
    if (!known.has(key)) {
      if (known.size >= MAX_CUTS) known.clear();
      known.set(key, cut(text.slice(0, MAX_CUT), width));
    }
    return known.get(key);
  };
}

// 1536 as "1.5 kB".
export function fileSize(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), units.length - 1);
  return `${Number((bytes / 1000 ** power).toPrecision(3))} ${units[power]}`;
}

export function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

export function json(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

const LONGEST_VALUE = 80; // characters of one value in a line of text

// A JSON object as "key value · key value": what a reader sees of a result before opening it.
export function brief(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return shorten(String(value), LONGEST_VALUE);
  const parts = Object.entries(value).map(([key, one]) => `${key} ${scalar(one)}`);
  return shorten(parts.join(" · "), LONGEST_VALUE * 2);
}

function scalar(value) {
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(5)));
  return typeof value === "object" ? shorten(JSON.stringify(value), LONGEST_VALUE) : shorten(String(value), LONGEST_VALUE);
}
