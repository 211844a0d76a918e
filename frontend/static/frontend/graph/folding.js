// What of a large graph is drawn as one box: rows of tasks one after the other, and those of a layer that have completed. Pure.

export const FOLD_FROM = 40; // tasks; a smaller graph is seen as it is
const ROW = 3; // tasks one after the other, at least
const LAYER = 12; // completed tasks with the same neighbours, at least

// `count` nodes, `edges` [[from, to], ...], `isOpen(node)`: stays by itself, `isDone(node)`: has completed.
// Returns {groups: [{kind: "row" | "layer", nodes}], crowds: [nodes]}: the nodes of a row are in their order, and of a crowd those
// that have completed are a layer, if they are enough.
export function foldGraph(count, edges, { isOpen, isDone }) {
  const before = Array.from({ length: count }, () => []);
  const after = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) {
    after[from].push(to);
    before[to].push(from);
  }
  const crowds = crowdsOf(count, before, after, isOpen);
  const layers = crowds.map((nodes) => layerOf(nodes, isDone)).filter((nodes) => nodes.length);
  return { groups: [...rows(count, before, after, isOpen), ...layers.map((nodes) => ({ kind: "layer", nodes }))], crowds };
}

// Those of a crowd that are drawn as one box: none, if too few have completed.
export function layerOf(nodes, isDone) {
  const done = nodes.filter(isDone);
  return done.length < LAYER ? [] : done;
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
function crowdsOf(count, before, after, isOpen) {
  const free = [...Array(count).keys()].filter((node) => !isOpen(node));
  const nearest = (node) => least(before[node]) * (count + 1) + least(after[node]); // tells most of them apart, at little cost
  return crowded(free, nearest).flatMap((nodes) => crowded(nodes, (node) => `${before[node].toSorted()}>${after[node].toSorted()}`));
}

// The nodes by what `place` says of them, where that is the same for enough.
function crowded(nodes, place) {
  const byPlace = new Map();
  for (const node of nodes) {
    const key = place(node);
    if (!byPlace.has(key)) byPlace.set(key, []);
    byPlace.get(key).push(node);
  }
  return [...byPlace.values()].filter((found) => found.length >= LAYER);
}

function least(nodes) {
  let found = Infinity;
  for (const node of nodes) if (node < found) found = node;
  return found === Infinity ? 0 : found + 1;
}
