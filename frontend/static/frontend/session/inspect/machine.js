// A machine as the server draws it, with one state lit.

import * as api from "../../api.js";
import { html, nothing, svg } from "../../vendor/lit.js";

const STATE_HEIGHT = 34; // as frontend/diagram.py measures
const START = 30;

export class MachinePicture {
  static #known = new Map(); // drawings by machine

  constructor({ redraw }) {
    this.redraw = redraw;
  }

  draw(machine, state) {
    const drawing = MachinePicture.#known.get(machine);
    if (drawing === undefined) this.#read(machine);
    if (!drawing) return nothing;
    const { width, height, nodes, edges, start } = drawing;
    return html`<div class="diagram" tabindex="0" role="group" aria-label="Its machine">
      <svg viewBox="0 0 ${width} ${height}" role="img" aria-label=${`The machine ${machine}; it is in ${state}`}>
        <defs><marker id="machine-arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z"></path></marker></defs>
        <g class="start"><circle cx=${nodes[0].x - nodes[0].width / 2 - START} cy=${nodes[0].y} r="5"></circle><path d=${start} marker-end="url(#machine-arrow)"></path></g>
        ${edges.map((edge) => edgeOf(edge))}
        ${nodes.map((node) => stateOf(node, node.name === state))}
      </svg>
    </div>`;
  }

  async #read(machine) {
    MachinePicture.#known.set(machine, null);
    try {
      MachinePicture.#known.set(machine, await api.machineDiagram(machine));
    } catch (error) {
      if (!(error instanceof api.Refused)) MachinePicture.#known.delete(machine); // a machine without a drawing stays without
    }
    this.redraw();
  }
}

function edgeOf(edge) {
  return svg`<g class="edge"><title>${edge.source} → ${edge.target}</title>
    <path class="line" d=${edge.path} marker-end="url(#machine-arrow)"></path>
    ${edge.labels.map((label) => svg`<text x=${label.x} y=${label.y} text-anchor=${edge.anchor}>${label.event}${label.guard ? svg`<tspan class="guard"> [${label.guard}]</tspan>` : nothing}</text>`)}
  </g>`;
}

function stateOf(node, isLit) {
  return svg`<g class="state" data-kind=${node.kind} data-state=${node.name} ?data-lit=${isLit}>
    <rect x=${node.x - node.width / 2} y=${node.y - STATE_HEIGHT / 2} width=${node.width} height=${STATE_HEIGHT} rx="8"></rect>
    <text x=${node.x} y=${node.y + 4} text-anchor="middle">${node.name}</text>
  </g>`;
}
