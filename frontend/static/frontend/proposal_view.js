// An edit of the graph that a program proposes, readable: who, why, what it changes, what follows, and each operation in full.

import { valuesView } from "./actions.js";
import { quoted, visible } from "./command_line.js";
import { element } from "./dom.js";
import { plural } from "./format.js";
import { PRIORITIES } from "./states.js";

const LONGEST_LIST = 200; // entries
const LONGEST_NAMES = 20; // task ids in one line
const SIGNS = { added: ["+", "added"], removed: ["−", "removed"], updated: ["~", "changed"] };
const FOLLOWS = { ready: "Becomes ready", blocked: "Waits again", skipped: "Is skipped", revived: "May run after all", approvals_needed: "Will ask before it begins" };

// `action`: {operations: [{op, parameters}], author, reason, based_on}; `observed`: what its preview showed: {version, diff,
// diff_total, consequences, consequences_total: how many there are of each}.
export function proposalView(action, observed) {
  const { operations = [], author, reason, based_on: version } = action;
  const { diff = [], diff_total: total = diff.length, consequences = {}, consequences_total: totals = {} } = observed ?? {};
  const facts = { by: author, ...(reason ? { why: reason } : {}), "made on version": version };
  const follows = Object.entries(FOLLOWS).filter(([key]) => consequences[key]?.length);
  return [
    ...valuesView(facts),
    element("h4", {}, "What it changes"),
    element("ul", { class: "diff" }, ...diff.slice(0, LONGEST_LIST).map(diffItem), ...rest(total - Math.min(diff.length, LONGEST_LIST))),
    ...(follows.length ? [element("h4", {}, "What follows"), element("dl", { class: "values" }, ...follows.flatMap(([key, words]) => followed(words, consequences[key], totals[key])))] : []),
    element("h4", {}, `By ${plural(operations.length, "operation")}`),
    element("ol", { class: "operations" }, ...operations.slice(0, LONGEST_LIST).map(operationItem), ...rest(operations.length - LONGEST_LIST)),
  ];
}

function operationItem(operation) {
  const { op, parameters } = operation;
  const { command, ...others } = parameters;
  const said = Array.isArray(command) ? { ...others, command: quoted(command) } : parameters;
  return element("li", {}, element("strong", {}, visible(op.replaceAll("_", " "))), ...valuesView(said));
}

function diffItem({ change, task, dependency, fields = {} }) {
  const [sign, word] = SIGNS[change] ?? ["?", change];
  const name = element("code", {}, visible(task ?? dependency));
  const what = [element("span", { class: "sign", "aria-hidden": "true" }, sign), `${task === undefined ? "dependency" : "task"} `, name, ` ${word}`];
  const changes = Object.entries(fields).map(([key, [old, fresh]]) => element("li", {}, `${visible(key)}: `, element("code", {}, value(key, old)), " → ", element("code", {}, value(key, fresh))));
  return element("li", { "data-change": change }, ...what, ...(changes.length ? [element("ul", {}, ...changes)] : []));
}

function value(key, any) {
  if (key === "priority" && any in PRIORITIES) return PRIORITIES[any];
  return visible(typeof any === "string" ? any || "(empty)" : JSON.stringify(any));
}

function followed(words, found, total = found.length) {
  const names = found.slice(0, LONGEST_NAMES).map((one) => visible(one.task_id ?? one)).join(", ");
  const more = total > LONGEST_NAMES ? ` and ${total - LONGEST_NAMES} more` : "";
  return [element("dt", {}, words), element("dd", {}, names + more)];
}

function rest(count) {
  return count > 0 ? [element("li", {}, element("strong", {}, `and ${count} more that are not shown here`))] : [];
}
