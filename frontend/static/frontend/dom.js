// Elements from names, attributes and children; text only ever becomes a text node.

import { shapePath } from "./states.js";

const SVG = "http://www.w3.org/2000/svg";

export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

// Writes only what differs, so that an unchanged page costs no layout.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function icon(shape, label = "") {
  const attributes = { viewBox: "0 0 16 16", class: "icon", ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }) };
  return svg("svg", attributes, svg("path", { d: shapePath(shape) }));
}

export function chip(look, title = null) {
  return element("span", { class: "chip", "data-tone": look.tone, title }, icon(look.shape), look.word);
}

// The JSON that a template left under `id` (Django's json_script).
export function pageData(id) {
  return JSON.parse(document.getElementById(id).textContent);
}
