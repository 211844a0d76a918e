// Pieces that several views of the inspector share, as lit templates.

import { html, nothing } from "../../vendor/lit.js";
import { clock, duration } from "../../format.js";
import { shapePath } from "../../states.js";

export const TEXT_SHOWN = 20_000; // characters of one text

export function chipOf({ word, tone, shape }, title = "") {
  return html`<span class="chip" data-tone=${tone} title=${title || nothing}><svg viewBox="0 0 16 16" class="icon" aria-hidden="true"><path d=${shapePath(shape)}></path></svg>${word}</span>`;
}

// A text or a value in full, as far as it is shown.
export function block(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const cut = text.length > TEXT_SHOWN ? html`<p class="note">… ${(text.length - TEXT_SHOWN).toLocaleString("en")} characters more</p>` : nothing;
  return html`<pre tabindex="0">${text.slice(0, TEXT_SHOWN)}</pre>${cut}`;
}

// Something that is made only when it is opened; `open` is a Set of the names that are.
export function folded(name, open, summary, content, redraw) {
  const toggled = (event) => {
    if (event.target.open === open.has(name)) return;
    if (event.target.open) open.add(name);
    else open.delete(name);
    redraw();
  };
  return html`<details data-part=${name} ?open=${open.has(name)} @toggle=${toggled}><summary>${summary}</summary>${open.has(name) ? content() : nothing}</details>`;
}

// Transitions as the server tells them; `store` knows who made them by name.
export function transitionsTable(rows, store) {
  if (!rows) return html`<p class="note">Reading…</p>`;
  if (!rows.length) return html`<p class="note">It has not moved yet.</p>`;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="History"><table>
    <thead><tr><th scope="col">When</th><th scope="col">To</th><th scope="col">By</th><th scope="col">After</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr title=${row.reason || nothing}>
      <td><time datetime=${row.at}>${clock(row.at)}</time></td>
      <td><code>${row.to_state}</code> <span class="note">${row.event}</span></td>
      <td>${store.personOf(row.by)}</td>
      <td>${row.spent === null ? nothing : duration(row.spent * 1000)}</td>
    </tr>`)}</tbody>
  </table></div>`;
}

export function closing(store) {
  return html`<button type="button" class="close quiet" aria-label="Close the details" @click=${() => store.select(null)}>✕</button>`;
}
