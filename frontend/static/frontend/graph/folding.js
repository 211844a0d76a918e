// What of a large graph is drawn as one box: rows of tasks one after the other, and those of a layer that have completed. Pure.

export const FOLD_FROM = 40; // tasks; a smaller graph is seen as it is
const ROW = 3; // tasks one after the other, at least
const LAYER = 12; // completed tasks with the same neighbours, at least

// `count` nodes, `edges` [[from, to], ...], `isOpen(node)`: stays by itself, `isDone(node)`: has completed.
// Returns [{kind: "row" | "layer", nodes}], the nodes of a row in their order.
export function foldGraph(count, edges, { isOpen, isDone }) {
  const before = Array.from({ length: count }, () => []);
  const after = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) {
    after[from].push(to);
    before[to].push(from);
  }
  return [...rows(count, before, after, isOpen), ...layers(count, before, after, isOpen, isDone)];
}

// Each of a row has one task before it and one after it.
function rows(count, before, after, isOpen) {
  const isLink = (node) => before[node].length === 1 && after[node].length === 1 && !isOpen(node);
  const found = [];
  for (let node = 0; node < count; node++) {
    if (!isLink(node) || isLink(before[node][0])) continue;
    const nodes = [];
    for (let at = node; isLink(at); [at] = after[at]) nodes.push(at);
    if (nodes.length >= ROW) found.push({ kind: "row", nodes });
  }
  return found;
}

// Those with the same tasks before and after them; one that would be in a row, too, is alone between its neighbours there.
function layers(count, before, after, isOpen, isDone) {
  const byPlace = new Map();
  for (let node = 0; node < count; node++) {
    if (isOpen(node) || !isDone(node)) continue;
    const place = `${before[node].toSorted()}>${after[node].toSorted()}`;
    if (!byPlace.has(place)) byPlace.set(place, []);
    byPlace.get(place).push(node);
  }
  return [...byPlace.values()].filter((nodes) => nodes.length >= LAYER).map((nodes) => ({ kind: "layer", nodes }));
}
