// A chart of a table with a row for each day: bars of money or, where nothing has a price, of tokens.

import { uPlot } from "../vendor/uplot.js";

const HEIGHT = 190; // pixels

// `table` has rows with `data-day`, `data-cost` and `data-tokens`.
export function drawDays(host, table) {
  const rows = [...table.querySelectorAll("[data-day]")];
  const priced = rows.some((row) => Number(row.dataset.cost) > 0);
  const values = rows.map((row) => Number(priced ? row.dataset.cost : row.dataset.tokens));
  const days = rows.map((row) => Date.parse(`${row.dataset.day}T00:00:00Z`) / 1000);
  const style = getComputedStyle(document.querySelector(".chart"));
  const axis = { stroke: style.color, grid: { stroke: style.borderTopColor, width: 1 }, ticks: { show: false }, font: `11px ${style.fontFamily}` };
  const options = {
    width: document.querySelector(".chart").clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    scales: { y: { range: (_, low, high) => [0, high || 1] } },
    axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => (priced ? tick.toFixed(2) : tick.toLocaleString("en"))) }],
    series: [{}, { stroke: style.outlineColor, fill: style.outlineColor, paths: uPlot.paths.bars({ size: [0.7, 40] }), points: { show: false } }],
  };
  host.replaceChildren();
  if (values.some(Boolean)) new uPlot(options, [days, values], host);
  else host.append("Nothing was asked in these days.");
}
