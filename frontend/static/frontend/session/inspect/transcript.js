// What agents did, step by step: calls of tools and calls of models, oldest first, each opened by a click. Reads the fold.

import * as api from "../../api.js";
import { html, nothing } from "../../vendor/lit.js";
import { between, clock, plural, shorten } from "../../format.js";
import { lookOf } from "../../states.js";
import { block, chipOf, folded } from "./parts.js";

const STEPS_SHOWN = 100; // the latest
const LINE = 90; // characters of a step's line
const TOLD = { nudge: "told", user: "hint", message: "says" }; // kinds of evidence that are words, and what the step is called

// The steps of some agents: [{kind: "model" | "tool", row}], and how many there were before those.
export function stepsOf(fold, agents) {
  const loops = new Set([...fold.table("loop").values()].filter((row) => agents.has(row.agent_id)).map((row) => row.id));
  const steps = [];
  for (const row of fold.table("evidence").values()) if (loops.has(row.loop_id)) steps.push({ kind: "tool", row });
  for (const row of fold.table("model_call").values()) if (agents.has(row.agent_id)) steps.push({ kind: "model", row });
  steps.sort((a, b) => a.row.started_at.localeCompare(b.row.started_at) || a.row.id - b.row.id);
  return { steps: steps.slice(-STEPS_SHOWN), before: Math.max(0, steps.length - STEPS_SHOWN) };
}

// What a step is about, in one line: words are shown as such.
function lineOf({ kind, target, arguments: given }) {
  const words = TOLD[kind] && (given?.text ?? given?.said);
  if (typeof words === "string") return html`<span>${shorten(words, LINE)}</span>`;
  return html`<code>${shorten(target || JSON.stringify(given ?? {}), LINE)}</code>`;
}

// An agent and all below it.
export function familyOf(fold, agent) {
  const family = new Set([agent]);
  for (const row of fold.table("agent").values()) if (family.has(row.parent_id)) family.add(row.id); // parents are older
  return family;
}

export class Transcript {
  #prompts = new Map(); // system prompts by call, as they were read

  // `redraw()` draws the view that this is a part of.
  constructor({ store, redraw }) {
    Object.assign(this, { store, redraw, open: new Set() });
  }

  draw(agents) {
    const { steps, before } = stepsOf(this.store.fold, agents);
    if (!steps.length) return nothing;
    return html`<section class="steps"><h3>Steps</h3>
      ${before ? html`<p class="note">${plural(before, "step")} before these</p>` : nothing}
      <ol>${steps.map(({ kind, row }) => html`<li data-step=${kind}>${kind === "model" ? this.#model(row) : this.#tool(row)}</li>`)}</ol>
    </section>`;
  }

  #tool(row) {
    const went = row.ended_at === null ? "running" : row.success === false ? "failed" : "well";
    const word = row.tool || (TOLD[row.kind] ?? row.kind);
    const line = html`${chipOf({ ...lookOf("went", went), word })} ${lineOf(row)}
      <span class="note">${between(row.started_at, row.ended_at, this.store.now())}</span>`;
    return html`${folded(`evidence-${row.id}`, this.open, line, () => this.#toolInFull(row), this.redraw)}
      ${row.verdict && ["steer", "halt"].includes(row.verdict.action) ? html`<p class="verdict">${row.verdict.sentence}</p>` : nothing}`;
  }

  #toolInFull(row) {
    return html`<h4>Arguments</h4>${block(row.arguments ?? {})}
      ${row.raw_error ? html`<h4>${row.error_kind || "Error"}</h4>${block(row.raw_error)}` : nothing}
      ${row.result !== null && row.result !== undefined ? html`<h4>Result</h4>${block(row.result)}` : nothing}
      <p class="note">${clock(row.started_at)}${row.exit_code === null ? "" : `, exit code ${row.exit_code}`}</p>`;
  }

  #model(row) {
    const went = row.ended_at === null ? "running" : row.error ? "failed" : "well";
    const said = shorten(messageText(row.reply) || row.thought || row.purpose, LINE);
    const line = html`${chipOf({ ...lookOf("went", went), word: row.model || row.profile || "model" })} <span>${said}</span>
      <span class="note">${spent(row)}</span>`;
    return folded(`model-${row.id}`, this.open, line, () => this.#modelInFull(row), this.redraw);
  }

  #modelInFull(row) {
    return html`${row.thought ? html`<h4>Thought</h4>${block(row.thought)}` : nothing}
      ${row.observation ? html`<h4>Observation</h4>${block(row.observation)}` : nothing}
      <h4>Asked</h4>${(row.added ?? []).map((message) => html`<p class="note">${message.role ?? ""}</p>${block(messageText(message))}`)}
      <h4>Answered</h4>${block(row.error || messageText(row.reply) || "nothing yet")}
      ${row.actions.length ? html`<h4>Wanted done</h4>${block(row.actions)}` : nothing}
      ${folded(`prompt-${row.id}`, this.open, "System prompt", () => this.#prompt(row), this.redraw)}
      <p class="note">${clock(row.started_at)}, ${between(row.started_at, row.ended_at, this.store.now())}${row.profile ? `, profile ${row.profile}` : ""}${row.tries.length ? `, ${plural(row.tries.length, "try")} in vain before` : ""}</p>`;
  }

  #prompt({ id }) {
    if (!this.#prompts.has(id)) this.#read(id);
    return block(this.#prompts.get(id) ?? "Reading…");
  }

  async #read(id) {
    this.#prompts.set(id, null);
    try {
      this.#prompts.set(id, (await api.modelCall(id)).prompt ?? "It is not kept.");
    } catch (error) {
      this.#prompts.set(id, `It cannot be read: ${error.message}`);
    }
    this.redraw();
  }
}

// "1,200 in, 300 out, 0.0042"
function spent({ input_tokens: input, output_tokens: output, cost }) {
  const parts = [];
  if (input !== null) parts.push(`${input.toLocaleString("en")} in`);
  if (output !== null) parts.push(`${output.toLocaleString("en")} out`);
  if (cost !== null) parts.push(`cost ${cost.toPrecision(2)}`);
  return parts.join(", ");
}

// A message of a conversation as text: its words, and its calls of tools as JSON.
export function messageText(message) {
  if (message === null || message === undefined) return "";
  if (typeof message === "string") return message;
  const { content, text, role, ...others } = message;
  const said = content ?? text;
  const words = Array.isArray(said) ? said.map((part) => part.text ?? JSON.stringify(part)).join("\n") : typeof said === "string" ? said : said ? JSON.stringify(said, null, 2) : "";
  const more = Object.values(others).some((value) => value !== null && value !== "" && (typeof value !== "object" || Object.keys(value).length)) ? JSON.stringify(others, null, 2) : "";
  return [words, more].filter(Boolean).join("\n");
}
