// The load of one device since the page was opened: its slots, and the percents that it says of itself with its heartbeats.
// The server keeps the last of them only, so what was before is not known here.

import { coloursAt } from "./colours.js";
import { element } from "./dom.js";
import { uPlot } from "./vendor/uplot.js";

const HEIGHT = 56; // pixels
const POINTS = 400; // the latest; looks come every 3 s
const SLOTS = "slots";
const LINES = [
  { name: SLOTS, colour: "--accent", word: "slots" },
  { name: "cpu_percent", colour: "--running", word: "cpu" },
  { name: "memory_percent", colour: "--pending", word: "memory" },
  { name: "disk_percent", colour: "--held", word: "disk" },
];

export class LoadChart {
  constructor(host) {
    Object.assign(this, { host, times: [], values: LINES.map(() => []), chart: null });
  }

  // `now` in milliseconds of the server's clock.
  add(device, now) {
    const readings = device.link?.readings ?? {};
    const said = { ...readings, [SLOTS]: (100 * device.used) / device.max_concurrent };
    this.times.push(now / 1000);
    LINES.forEach(({ name }, i) => this.values[i].push(typeof said[name] === "number" ? said[name] : null));
    for (const column of [this.times, ...this.values]) if (column.length > POINTS) column.shift();
    if (this.times.length > 1 && this.values.flat().some(Boolean)) this.#draw(); // a line at nought says nothing
  }

  #draw() {
    this.host.hidden = false;
    const width = this.host.clientWidth;
    const data = [this.times, ...this.values];
    if (!this.chart) this.#begin(width, data);
    if (this.chart.width !== width) this.chart.setSize({ width, height: HEIGHT });
    this.chart.setData(data);
    LINES.forEach((_, i) => (this.legend.children[i].hidden = this.values[i].every((value) => value === null)));
    const since = new Date(this.times[0] * 1000).toLocaleTimeString();
    this.host.title = `Percent since ${since}, as this page has seen it`;
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
