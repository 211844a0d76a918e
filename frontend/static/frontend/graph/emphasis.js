// What of a graph belongs together: all that leads to a node and follows from it, and the chain that took longest. Pure.
//
// A part of a graph is {nodes: Set of node numbers, edges: Set of edge numbers}. `edges` are [[from, to], ...] by node number,
// `incident` the numbers of each node's edges.

export function relatedTo(node, edges, incident) {
  const found = { nodes: new Set([node]), edges: new Set() };
  for (const [near, far] of [[0, 1], [1, 0]]) walk(node, near, far, edges, incident, found);
  return found;
}

function walk(node, near, far, edges, incident, found) {
  const seen = new Set([node]);
  const open = [node];
  while (open.length) {
    const at = open.pop();
    for (const edge of incident[at]) {
      if (edges[edge][near] !== at) continue;
      found.edges.add(edge);
      const next = edges[edge][far];
      if (seen.has(next)) continue;
      seen.add(next);
      found.nodes.add(next);
      open.push(next);
    }
  }
}

// The chain whose durations (`length(node)`, in any unit) add up to the most; of equal ones that with the lower numbers.
export function criticalPath(count, edges, incident, length) {
  const total = new Float64Array(count);
  const last = new Int32Array(count).fill(-1); // the edge by which the longest chain comes to a node
  let end = -1;
  for (const node of upstreamFirst(count, edges, incident)) {
    total[node] += length(node);
    if (end < 0 || total[node] > total[end]) end = node;
    for (const edge of incident[node]) {
      const [from, to] = edges[edge];
      if (from !== node || (last[to] >= 0 && total[node] <= total[to])) continue;
      total[to] = total[node];
      last[to] = edge;
    }
  }
  const path = { nodes: new Set(), edges: new Set() };
  for (let node = end; node >= 0; node = last[node] < 0 ? -1 : edges[last[node]][0]) {
    path.nodes.add(node);
    if (last[node] >= 0) path.edges.add(last[node]);
  }
  return path;
}

function upstreamFirst(count, edges, incident) {
  const waits = new Int32Array(count);
  for (const [, to] of edges) waits[to] += 1;
  const order = [];
  for (let node = 0; node < count; node++) if (waits[node] === 0) order.push(node);
  for (const node of order) {
    for (const edge of incident[node]) {
      const [from, to] = edges[edge];
      if (from === node && --waits[to] === 0) order.push(to);
    }
  }
  return order;
}
