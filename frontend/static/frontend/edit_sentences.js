// An edit as a sentence: by whom, what it added, removed and changed, and why. Pure.

import { shorten } from "./format.js";
import { lookOf } from "./states.js";

const LONGEST_LIST = 4; // names of one kind
const LONGEST_REASON = 160; // characters
const AUTHORS = { planner: "The planner", user: "Somebody", token: "A program" }; // by the author's kind, `kind:id`
const KINDS = ["added", "removed", "updated"];

// [look, text, author], or null for the pieces that follow: they carry rows of which the first has told. With `isNamed` the text
// goes on from the author, whom the reader knows by name.
export function edited(data, isNamed = false) {
  const edit = data.add?.edit?.[0];
  if (!edit) return null;
  const who = isNamed ? "" : (AUTHORS[edit.author?.split(":")[0]] ?? "Somebody");
  const what = edit.undoes_id ? "took an edit back" : "edited the graph";
  const changes = changesOf(data.diff ?? edit.diff ?? []);
  const reason = edit.reason ? `: ${shorten(edit.reason, LONGEST_REASON)}` : "";
  return [lookOf("event", "edited"), `${who} ${what}${changes ? ` (${changes})` : ""}${reason}`, edit.author];
}

// `diff` is a list of {change, task} and {change, dependency}. Tasks are named; a dependency is where no task tells more.
export function changesOf(diff) {
  return KINDS.map((kind) => kindOf(kind, diff.filter((one) => one.change === kind))).filter(Boolean).join("; ");
}

function kindOf(kind, entries) {
  const tasks = entries.filter((one) => one.task);
  const dependencies = entries.filter((one) => one.dependency);
  const told = [...listed(tasks.map((one) => one.task)), ...(tasks.length ? counted(dependencies) : listed(dependencies.map((one) => one.dependency)))];
  return told.length ? `${kind === "updated" ? "changed" : kind} ${told.join(", ")}` : "";
}

function listed(names) {
  const more = names.length - LONGEST_LIST;
  return [...names.slice(0, LONGEST_LIST), ...(more > 0 ? [`${more.toLocaleString("en")} more`] : [])];
}

function counted(dependencies) {
  const count = dependencies.length;
  return count ? [count === 1 ? "1 dependency" : `${count.toLocaleString("en")} dependencies`] : [];
}
