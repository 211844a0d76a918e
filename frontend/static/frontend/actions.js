// What is to be approved, readable: a command as one line, a file as its path and text, phases as a list of steps.

import { callLine, quoted, visible } from "./command_line.js";
import { element } from "./dom.js";
import { plural } from "./format.js";

const SHOWN = 50_000; // characters of one text; what is left out is said
const LONG = 80; // characters of a value that stands in a line
const LONGEST_LIST = 200; // entries
const FIRST = ["path", "target", "url"]; // arguments that say where, before those that say what

// Nodes for an action: {tool, arguments}, {phases} or {}.
export function actionView(action) {
  if (Array.isArray(action.phases)) return [phaseList(action.phases)];
  if (!action.tool) return [];
  const { argv, ...others } = action.arguments ?? {};
  const led = action.leads_to === undefined ? {} : { "leads to": action.leads_to };
  if (!Array.isArray(argv)) return [toolName(action.tool), ...valuesView({ ...action.arguments, ...led })];
  return [element("pre", { class: "command", tabindex: 0, "aria-label": "Command" }, quoted(argv)), ...valuesView(others)];
}

function toolName(tool) {
  return element("p", { class: "tool" }, "Tool ", element("code", {}, tool));
}

// Named values: short ones as a list, texts as blocks of their own.
export function valuesView(values) {
  const entries = Object.entries(values).sort(([a], [b]) => rank(a) - rank(b));
  const short = entries.filter(([, value]) => !isLong(value));
  const list = element("dl", { class: "values" }, ...short.flatMap(([key, value]) => [element("dt", {}, visible(key)), element("dd", {}, said(value))]));
  const blocks = entries.filter(([, value]) => isLong(value)).flatMap(([key, value]) => [element("h4", {}, visible(key)), block(said(value))]);
  return [...(short.length ? [list] : []), ...blocks];
}

function rank(key) {
  return FIRST.includes(key) ? 0 : 1;
}

function isLong(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > LONG || text.includes("\n");
}

function said(value) {
  return visible(typeof value === "string" ? value || "(empty)" : JSON.stringify(value, null, isLong(value) ? 2 : 0));
}

function block(text) {
  const left = text.length - SHOWN;
  const shown = left > 0 ? [text.slice(0, SHOWN), element("strong", {}, `\n… and ${plural(left, "character")} more that are not shown here`)] : [text];
  return element("pre", { tabindex: 0 }, ...shown);
}

function phaseList(phases) {
  if (phases.length === 1 && !phases[0].description) return stepList(phases[0].steps);
  const items = phases.slice(0, LONGEST_LIST).map((phase) => {
    const expected = phase.expected_duration ? element("span", { class: "note" }, ` expected to take ${phase.expected_duration} s`) : null;
    return element("li", {}, element("strong", {}, visible(phase.description || "A phase")), expected, stepList(phase.steps));
  });
  return element("ol", { class: "phases" }, ...items, ...left(phases));
}

function stepList(steps = []) {
  return element("ol", { class: "steps" }, ...steps.slice(0, LONGEST_LIST).map(stepItem), ...left(steps));
}

function left(list) {
  const count = list.length - LONGEST_LIST;
  return count > 0 ? [element("li", {}, element("strong", {}, `and ${count} more that are not shown here`))] : [];
}

const STEPS = {
  call: (step) => [element("code", {}, callLine(step.tool, step.arguments))],
  say: (step) => [`says “${visible(step.text)}”`],
  ask: (step) => [`asks a person “${visible(step.question)}”`],
  observe: () => ["looks at the workspace and the system"],
  wait: (step) => [step.for ? `waits for ${visible(step.for)}, at most ${step.timeout} s` : `waits ${step.seconds} s`],
  delegate: (step) => [`delegates to ${visible(step.name)}`],
};

function stepItem(step) {
  const parts = STEPS[step.do]?.(step) ?? [element("code", {}, visible(JSON.stringify(step)))];
  const notes = remarks(step).map((text) => element("span", { class: "note" }, ` ${text}`));
  return element("li", {}, ...parts, ...notes, ...inner(step));
}

function inner({ steps, recover }) {
  if (steps) return [stepList(steps)];
  return recover?.length ? [element("div", { class: "note" }, "when it is stuck:"), stepList(recover)] : [];
}

function remarks(step) {
  const found = [];
  if (step.if) found.push(`if ${visible(step.if)}`);
  if (step.tries > 1) found.push(`up to ${step.tries} times`);
  if (step.writes) found.push(`writes ${visible(step.writes)}`);
  if (step.on_failure === "continue") found.push("goes on if it fails");
  if (step.confirm) found.push("asks again before it");
  return found;
}
