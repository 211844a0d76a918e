// What the forms of operations share: a field by its schema, what a form says, and what is refused of it.

import { html, nothing } from "../../vendor/lit.js";
import { kindOf, valueOf } from "./fields.js";

const LONG = new Set(["lines", "line or lines", "json"]);

// One field: `text` as it begins, `problems` [{field, message}] of this one, `hint` or nothing.
export function fieldOf({ key, schema, text, problems = [], hint = "", isMoved = false, list = nothing, name = key.replaceAll("_", " ") }) {
  return html`<label data-field=${key} ?data-moved=${isMoved}>
    <span>${name}</span>
    ${controlOf(key, schema, text, problems.length > 0, list)}
    ${hint ? html`<small>${hint}</small>` : nothing}
    ${problems.map((one) => html`<strong class="problem" id=${`problem-${key}`} role="alert">${one.message}</strong>`)}
  </label>`;
}

function controlOf(key, schema, text, isWrong, list) {
  const kind = kindOf(schema);
  const wrong = isWrong ? "true" : nothing;
  const said = isWrong ? `problem-${key}` : nothing;
  if (kind === "choice" || kind === "flag") {
    const choices = kind === "flag" ? ["true", "false"] : schema.enum.filter((one) => one !== null);
    const words = { true: "yes", false: "no" };
    return html`<select name=${key} aria-invalid=${wrong} aria-describedby=${said}>
      <option value="" ?selected=${text === ""}>as by default</option>
      ${choices.map((one) => html`<option value=${one} ?selected=${text === one}>${words[one] ?? one.toLowerCase().replaceAll("_", " ")}</option>`)}
    </select>`;
  }
  if (LONG.has(kind)) {
    const hint = kind === "json" ? "JSON" : kind === "lines" ? "one a line" : "a line, or one word a line";
    return html`<textarea name=${key} rows=${text.includes("\n") ? 4 : 2} spellcheck="false" placeholder=${hint} aria-invalid=${wrong} aria-describedby=${said} .defaultValue=${text}></textarea>`;
  }
  return html`<input name=${key} list=${list} autocomplete="off" inputmode=${kind === "number" ? "decimal" : nothing} aria-invalid=${wrong} aria-describedby=${said} .defaultValue=${text}>`;
}

// The values of a form that are otherwise than `before` (texts by key), and what cannot be read of them.
export function readFields(properties, elements, before) {
  const values = {};
  const problems = [];
  for (const [key, schema] of Object.entries(properties)) {
    const { value: text } = elements[key];
    if (text === before[key]) continue;
    try {
      const value = valueOf(text, schema, before[key]);
      if (value !== undefined) values[key] = value;
    } catch (error) {
      problems.push({ field: key, message: error.message });
    }
  }
  return { values, problems };
}

// What a refusal says of a form: by field where it names one.
export function problemsOf(refused) {
  if (!refused.problems.length) return [{ field: "", message: refused.message }];
  return refused.problems.map(({ field = "", message }) => ({ field: (field ?? "").split(/[.[]/)[0], message }));
}

// Problems that no field of the form has.
export function generalProblems(problems, keys) {
  return problems.filter((one) => !keys.includes(one.field)).map((one) => html`<p class="alarm" role="alert">${one.field ? `${one.field}: ` : ""}${one.message}</p>`);
}

export function buttonsOf(onClose) {
  return html`<div class="buttons">
    <button type="button" class="quiet" @click=${onClose}>Not now</button>
    <button class="primary">Put into the draft</button>
  </div>`;
}
