// A layered layout: longest-path layers, barycentre sweeps, then places across a layer by least squares. Pure.
//
// Everything is computed on two axes, `along` (from layer to layer) and `across` (within one), and turned into x and y at
// the end: the graph runs down or to the right, whichever fits the viewport better.

export const NODE = { width: 208, height: 66 };
const GAP = { along: 52, across: 22, bend: 12, label: 44 };
const SWEEPS = [
  { upTo: 300, order: 12, place: 8 },
  { upTo: 2500, order: 8, place: 4 },
  { upTo: Infinity, order: 3, place: 2 },
];
const MAX_BENDS = 6000; // invisible places that long edges pass through; beyond, long edges are drawn straight
const MIN_CAPACITY = 12; // nodes side by side before a layer is folded into several rows

// `count` nodes, `edges` [[from, to], ...] by node number, `view` {width, height} in pixels, `labelled(edge)` whether text
// stands on it. Returns {x, y: centres, layer, layers: [[node]], bends: [[{x, y}]] by edge, width, height, down}.
export function layout(...given) {
  const steps = layoutSteps(...given);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

// The same in steps of a few milliseconds, so that a page may do something else between them.
export function* layoutSteps(count, edges, view = { width: 1200, height: 800 }, labelled = () => false) {
  const layer = layersOf(count, edges);
  const layers = count ? largest(layer) + 1 : 0;
  const sizes = sizesOf(layer, layers);
  const down = runsDown(count, sizes, view);
  const capacity = capacityOf(count, view, down);
  const bent = bendsFit(edges, layer) && largest(sizes) <= capacity;
  const graph = bent ? withBends(count, edges, layer) : plain(count, edges, layer);
  const sweeps = SWEEPS.find((one) => count <= one.upTo);
  yield;
  const order = yield* orderLayers(graph, layers, sweeps.order);
  const across = yield* placeAcross(graph, order, down, capacity, sweeps.place);
  const along = placeAlong(graph, order, edges, layer, down, capacity, labelled);
  yield;
  return finish(count, edges, graph, order, layer, across, along, down);
}

function largest(numbers) {
  let most = 0;
  for (const number of numbers) if (number > most) most = number;
  return most;
}

function layersOf(count, edges) {
  const { start, to } = adjacency(count, edges, 0, 1);
  const layer = new Int32Array(count);
  const waits = new Int32Array(count);
  for (const edge of edges) waits[edge[1]] += 1;
  const sources = waits.map((number) => (number === 0 ? 1 : 0));
  const queue = new Int32Array(count);
  let end = 0;
  for (let node = 0; node < count; node++) if (waits[node] === 0) queue[end++] = node;
  for (let at = 0; at < end; at++) {
    const node = queue[at];
    for (let i = start[node]; i < start[node + 1]; i++) {
      const next = to[i];
      if (layer[next] <= layer[node]) layer[next] = layer[node] + 1;
      if (--waits[next] === 0) queue[end++] = next;
    }
  }
  pullSources(layer, sources, start, to);
  return layer;
}

// A source stands just before what first needs it, not at the far end of a long edge.
function pullSources(layer, sources, start, to) {
  for (let node = 0; node < layer.length; node++) {
    if (!sources[node] || start[node] === start[node + 1]) continue;
    let first = Infinity;
    for (let i = start[node]; i < start[node + 1]; i++) first = Math.min(first, layer[to[i]]);
    layer[node] = Math.max(0, first - 1);
  }
}

// Neighbours in compressed rows: those of node n are to[start[n]] .. to[start[n + 1] - 1].
function adjacency(count, edges, from, into) {
  const start = new Int32Array(count + 1);
  for (const edge of edges) start[edge[from] + 1] += 1;
  for (let node = 0; node < count; node++) start[node + 1] += start[node];
  const next = start.slice();
  const to = new Int32Array(edges.length);
  for (const edge of edges) to[next[edge[from]]++] = edge[into];
  return { start, to };
}

function sizesOf(layer, layers) {
  const sizes = new Int32Array(layers);
  for (const one of layer) sizes[one] += 1;
  return sizes;
}

function extent(down) {
  return down
    ? { along: NODE.height + GAP.along, across: NODE.width + GAP.across }
    : { along: NODE.width + GAP.along, across: NODE.height + GAP.across };
}

function capacityOf(count, view, down) {
  const step = extent(down);
  const aspect = down ? view.width / view.height : view.height / view.width;
  return Math.max(MIN_CAPACITY, Math.ceil(1.5 * Math.sqrt((count * aspect * step.along) / step.across)));
}

function runsDown(count, sizes, view) {
  const scale = (down) => {
    const step = extent(down);
    const capacity = capacityOf(count, view, down);
    let rows = 0;
    let widest = 1;
    for (const size of sizes) {
      rows += Math.ceil(size / capacity);
      widest = Math.max(widest, Math.min(size, capacity));
    }
    const [along, across] = down ? [view.height, view.width] : [view.width, view.height];
    return Math.min(along / (rows * step.along), across / (widest * step.across));
  };
  return scale(true) >= scale(false);
}

function bendsFit(edges, layer) {
  let bends = 0;
  for (const [from, to] of edges) bends += Math.max(0, layer[to] - layer[from] - 1);
  return bends <= MAX_BENDS;
}

function plain(count, edges, layer) {
  return { count, real: count, layer, segments: edges, paths: null };
}

// Long edges become chains through one bend in each layer between, so that they find their way around nodes.
function withBends(count, edges, layer) {
  const layers = Array.from(layer);
  const segments = [];
  const paths = edges.map(([from, to]) => {
    const path = [];
    let last = from;
    for (let at = layer[from] + 1; at < layer[to]; at++) {
      const bend = layers.push(at) - 1;
      segments.push([last, bend]);
      path.push(bend);
      last = bend;
    }
    segments.push([last, to]);
    return path;
  });
  return { count: layers.length, real: count, layer: Int32Array.from(layers), segments, paths };
}

// The order within each layer: every sweep sorts a layer by the mean place of its neighbours in the layers before it, then
// after it. Places are relative to the layer's size, so that neighbours of different layers compare.
function* orderLayers(graph, layers, sweeps) {
  const order = Array.from({ length: layers }, () => []);
  for (let node = 0; node < graph.count; node++) order[graph.layer[node]].push(node);
  const place = new Float64Array(graph.count);
  for (const one of order) number(one, place);
  const before = adjacency(graph.count, graph.segments, 1, 0);
  const after = adjacency(graph.count, graph.segments, 0, 1);
  const key = new Float64Array(graph.count);
  for (let sweep = 0; sweep < sweeps; sweep++) {
    for (let at = 1; at < layers; at++) sortLayer(order[at], before, place, key);
    yield;
    for (let at = layers - 2; at >= 0; at--) sortLayer(order[at], after, place, key);
    yield;
  }
  return order;
}

function number(nodes, place) {
  for (let i = 0; i < nodes.length; i++) place[nodes[i]] = (i + 0.5) / nodes.length;
}

function sortLayer(nodes, near, place, key) {
  for (const node of nodes) {
    const first = near.start[node];
    const last = near.start[node + 1];
    let sum = 0;
    for (let i = first; i < last; i++) sum += place[near.to[i]];
    key[node] = last > first ? sum / (last - first) : place[node];
  }
  nodes.sort((a, b) => key[a] - key[b] || place[a] - place[b]);
  number(nodes, place);
}

function* placeAcross(graph, order, down, capacity, sweeps) {
  const step = extent(down).across;
  const size = (node) => (node < graph.real ? step : GAP.bend * 2);
  const across = new Float64Array(graph.count);
  const free = order.map((nodes) => nodes.length <= capacity || graph.paths !== null);
  order.forEach((nodes, at) => (free[at] ? centre(nodes, size, across) : grid(nodes, step, capacity, across)));
  const before = adjacency(graph.count, graph.segments, 1, 0);
  const after = adjacency(graph.count, graph.segments, 0, 1);
  for (let sweep = 0; sweep < sweeps; sweep++) {
    for (let at = 1; at < order.length; at++) if (free[at]) settle(order[at], before, size, across);
    yield;
    for (let at = order.length - 2; at >= 0; at--) if (free[at]) settle(order[at], after, size, across);
    yield;
  }
  return across;
}

function centre(nodes, size, across) {
  let total = 0;
  for (const node of nodes) total += size(node);
  let at = -total / 2;
  for (const node of nodes) {
    across[node] = at + size(node) / 2;
    at += size(node);
  }
}

function grid(nodes, step, capacity, across) {
  const rows = Math.ceil(nodes.length / capacity);
  const columns = Math.ceil(nodes.length / rows);
  nodes.forEach((node, i) => {
    across[node] = (Math.floor(i / rows) - (columns - 1) / 2) * step;
  });
}

// Every node as near as possible (least squares) to the mean of its neighbours, in order and without overlap: isotonic
// regression by pooling neighbours that would overlap.
function settle(nodes, near, size, across) {
  const sums = [];
  const counts = [];
  const offsets = new Float64Array(nodes.length);
  for (let i = 0; i < nodes.length; i++) {
    if (i) offsets[i] = offsets[i - 1] + (size(nodes[i - 1]) + size(nodes[i])) / 2;
    sums.push(wanted(nodes[i], near, across) - offsets[i]);
    counts.push(1);
    while (sums.length > 1 && sums.at(-2) / counts.at(-2) > sums.at(-1) / counts.at(-1)) {
      const sum = sums.pop();
      const number = counts.pop();
      sums[sums.length - 1] += sum;
      counts[counts.length - 1] += number;
    }
  }
  let i = 0;
  for (let pool = 0; pool < sums.length; pool++) {
    const at = sums[pool] / counts[pool];
    for (let end = i + counts[pool]; i < end; i++) across[nodes[i]] = at + offsets[i];
  }
}

function wanted(node, near, across) {
  const first = near.start[node];
  const last = near.start[node + 1];
  if (first === last) return across[node];
  let sum = 0;
  for (let i = first; i < last; i++) sum += across[near.to[i]];
  return sum / (last - first);
}

function placeAlong(graph, order, edges, layer, down, capacity, labelled) {
  const step = extent(down).along;
  const wide = new Uint8Array(order.length);
  edges.forEach((edge, i) => {
    if (labelled(i)) wide[layer[edge[0]]] = 1;
  });
  const along = new Float64Array(graph.count);
  let at = 0;
  order.forEach((nodes, number) => {
    const rows = graph.paths === null ? Math.ceil(nodes.length / capacity) : 1;
    nodes.forEach((node, i) => {
      along[node] = at + (i % rows) * step;
    });
    at += rows * step + (wide[number] ? (down ? GAP.label / 2 : GAP.label * 3) : 0);
  });
  return along;
}

function finish(count, edges, graph, order, layer, across, along, down) {
  const x = down ? across : along;
  const y = down ? along : across;
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let node = 0; node < graph.count; node++) {
    left = Math.min(left, x[node]);
    right = Math.max(right, x[node]);
    top = Math.min(top, y[node]);
    bottom = Math.max(bottom, y[node]);
  }
  if (count === 0) left = right = top = bottom = 0;
  const dx = NODE.width / 2 - left;
  const dy = NODE.height / 2 - top;
  for (let node = 0; node < graph.count; node++) {
    x[node] += dx;
    y[node] += dy;
  }
  return {
    x: x.subarray(0, count),
    y: y.subarray(0, count),
    layer,
    layers: order.map((nodes) => nodes.filter((node) => node < count)),
    bends: edges.map((_, i) => (graph.paths ? graph.paths[i].map((bend) => ({ x: x[bend], y: y[bend] })) : [])),
    width: right + dx + NODE.width / 2,
    height: bottom + dy + NODE.height / 2,
    down,
  };
}
