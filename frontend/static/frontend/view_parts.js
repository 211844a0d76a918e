// Parts that several of the pages drawn with lit-html share. Text is only ever a text node.

import { chip } from "./dom.js";
import { html } from "./vendor/lit.js";

// A state as a chip: word, tone and shape.
export function chipView(look, title = null) {
  return html`${chip(look, title)}`;
}
