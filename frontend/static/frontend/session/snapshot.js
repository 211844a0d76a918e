// A snapshot by columns as tables of the fold. It is made in slices, so that the page answers meanwhile.

import { Fold } from "../fold.js";

const SLICE_MS = 12;
const ROWS_BETWEEN = 200; // rows between two looks at the clock

// {table: {columns, rows}} as {table: Map(id, row)}; what a table leaves out has its default of `defaults` ({table: {field: value}}).
export async function tablesOf(tables, defaults = {}) {
  const found = {};
  let begun = performance.now();
  for (const [name, { columns, rows }] of Object.entries(tables)) {
    const blank = { ...defaults[name], ...Object.fromEntries(columns.map((column) => [column, null])) };
    const table = (found[name] = new Map());
    for (const [i, values] of rows.entries()) {
      const row = { ...blank };
      for (let j = 0; j < columns.length; j++) row[columns[j]] = values[j];
      table.set(row.id, row);
      if (i % ROWS_BETWEEN || performance.now() - begun < SLICE_MS) continue;
      await pause();
      begun = performance.now();
    }
  }
  return found;
}

// The fold at a moment that was asked for (api.js, `moment`) as what differs from `base`.
export async function foldAt(base, found) {
  const tables = await tablesOf(found.tables, base.defaults);
  const from = found.since === base.seq ? base : new Fold(base.defaults);
  return from.elsewhere({ ...found, tables });
}

// Lets the browser do what waits, messages too, and goes on at once: a timer would wait 4 ms each time.
function pause() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = resolve;
    port2.postMessage(null);
  });
}
