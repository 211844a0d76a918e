// What is worth a look and waits for nobody: requests that failed, devices that are lost, budgets that are nearly used up.

import { visible } from "../command_line.js";
import { setText } from "../dom.js";
import { ago } from "../format.js";
import { lookOf } from "../states.js";
import { html, nothing, render, repeat } from "../vendor/lit.js";
import { chipView } from "../view_parts.js";

export function drawNotices(section, entries, now) {
  section.hidden = !entries.length;
  setText(section.querySelector(".count"), entries.length ? String(entries.length) : "");
  render(repeat(entries, (entry) => entry.key, (entry) => notice(entry, now)), section.querySelector("ul"));
}

function notice({ key, kind, title, since, session, details }, now) {
  const why = details.reason || (kind === "budget_used" && details.then === "ask" ? "People are asked for more." : "");
  const when = since ? html`<time datetime=${since} title=${new Date(since).toLocaleString()}>${ago(since, now)}</time>` : nothing;
  const href = session ? `/sessions/${session.id}/` : kind === "device_lost" ? "/devices/" : null;
  const name = href ? html`<a href=${href}>${visible(title)}</a>` : visible(title);
  return html`<li data-entry=${key}>${chipView(lookOf("ask", kind))}<span class="title">${name}</span>
    ${why ? html`<span class="note">${visible(why)}</span>` : nothing}${when}</li>`;
}
