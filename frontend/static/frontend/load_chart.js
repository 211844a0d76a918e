// The load of one device in the last day: its slots, and the percents that it says of itself with its heartbeats.
// What was before the page was opened the server has kept, a reading in each span of time.

import { coloursAt } from "./colours.js";
import { element } from "./dom.js";
import { uPlot } from "./vendor/uplot.js";

const HEIGHT = 56; // pixels
const POINTS = 400; // the latest; looks come every 3 s
const SPAN_S = 300; // between two readings that the server keeps
const DAY_S = 86_400;
const SLOTS = "slots";
const LINES = [
  { name: SLOTS, colour: "--accent", word: "slots" },
  { name: "cpu_percent", colour: "--running", word: "cpu" },
  { name: "memory_percent", colour: "--pending", word: "memory" },
  { name: "disk_percent", colour: "--held", word: "disk" },
];

export class LoadChart {
  constructor(host) {
    Object.assign(this, { host, past: columns(), looks: columns(), chart: null });
  }

  // How it was before, as the server has kept it, oldest first.
  begin(kept) {
    const opened = this.looks[0][0] ?? Infinity;
    for (const row of kept) {
      const at = Date.parse(row.at) / 1000;
      if (at < opened) this.#remember(at, percents(row.readings, row));
    }
    this.#look();
  }

  // `now` in milliseconds of the server's clock.
  add(device, now) {
    put(this.looks, now / 1000, percents(device.link?.readings, device));
    if (this.looks[0].length > POINTS) {
      const [at, ...values] = this.looks.map((column) => column.shift());
      if (at - (this.past[0].at(-1) ?? 0) >= SPAN_S) this.#remember(at, values);
    }
    this.#look();
  }

  // Where nothing is known for long the lines end, and begin again.
  #remember(at, values) {
    const last = this.past[0].at(-1);
    if (at - last > 2 * SPAN_S) put(this.past, last + SPAN_S, LINES.map(() => null));
    put(this.past, at, values);
    while (at - this.past[0][0] > DAY_S) for (const column of this.past) column.shift();
  }

  #look() {
    const data = this.past.map((column, i) => column.concat(this.looks[i]));
    if (data[0].length > 1 && data.slice(1).flat().some(Boolean)) this.#draw(data); // a line at nought says nothing
  }

  #draw(data) {
    this.host.hidden = false;
    const width = this.host.clientWidth;
    if (!this.chart) this.#begin(width, data);
    if (this.chart.width !== width) this.chart.setSize({ width, height: HEIGHT });
    this.chart.setData(data);
    LINES.forEach((_, i) => (this.legend.children[i].hidden = data[i + 1].every((value) => value === null)));
    this.host.title = `Percent since ${new Date(data[0][0] * 1000).toLocaleString()}`;
  }

  #begin(width, data) {
    const colour = (name) => coloursAt(this.host, [name])[name];
    this.legend = element("p", { class: "note legend" }, ...LINES.map(({ word, colour: name }) => element("span", { "data-colour": name }, word)));
    const series = LINES.map((line) => ({ stroke: () => colour(line.colour), width: 1.5, points: { show: false }, ...(line.name === SLOTS ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}) }));
    const options = {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      padding: [3, 0, 3, 0],
      scales: { y: { range: [0, 100] } },
      axes: [{ show: false }, { show: false }],
      series: [{}, ...series],
    };
    this.chart = new uPlot(options, data, this.host);
    this.chart.root.setAttribute("aria-hidden", "true"); // the card says all of it in words
    this.host.append(this.legend);
  }
}

// Times, and the values of each line.
function columns() {
  return [[], ...LINES.map(() => [])];
}

function put(into, at, values) {
  [at, ...values].forEach((value, i) => into[i].push(value));
}

function percents(readings, { used, max_concurrent: all }) {
  const said = { ...readings, [SLOTS]: (100 * used) / all };
  return LINES.map(({ name }) => (typeof said[name] === "number" ? said[name] : null));
}
