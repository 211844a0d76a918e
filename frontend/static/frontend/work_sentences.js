// Events of agents at work as sentences: what they do, wait for, and are told. Pure; sentences.js has the others.
//
// A tool loop changes its state many times for each action: the feed has one line for the action, and of the states only
// those in which it stands still.

import { duration, plural, shorten } from "./format.js";
import { lookOf, reasonWords, ruleWords } from "./states.js";

const LONGEST_TARGET = 120; // characters
const LONGEST_TEXT = 160;
const LONGEST_LIST = 4; // keys in one sentence
const SILENT = new Set(["user", "nudge", "phase", "compaction", "accept", "ruling"]); // kinds of evidence that are no action
const NOTES = { user: "A message of a person reached", compaction: "What was said so far was summed up for" };
const ASKED = { question: "A question waits", elicitation: "A tool server's question waits", callback: "Something from outside is awaited", lost: "A lost attempt waits for a decision", edit: "A proposed edit waits" };
const DECIDED = { edit: ["The edit was approved", "The edit was rejected"], question: ["Answered", "Not answered"], elicitation: ["Answered", "Not answered"], callback: ["It came from outside", "It failed outside"] };

// {event type: (data, fold) => [look, text], or null for what says nothing to a reader}
export const WORK = {
  approval_asked: (data, fold) => about(data, fold, lookOf("agent", "CONFIRM"), (row) => ASKED[row.kind] ?? "An approval waits"),
  approval_decided: (data, fold) => about(data, fold, lookOf("approval", yes(data) ? "approved" : "rejected"), (row) => decision(data, row)),
  approval_expired: (data, fold) => about(data, fold, lookOf("approval", "expired"), () => "Nobody answered in time"),
  approval_withdrawn: (data, fold) => about(data, fold, lookOf("approval", "withdrawn"), () => "It is not waited for any more"),
  approval_used: () => null,
  loop_created: () => null,
  attempt_moves: () => null,
  attempt_waits: () => null,
  attempt_resumed: () => null,
  agent_returned: () => null,
  looks_again: () => null,
  look_lost: () => null,
  phase_changed: () => null,
  task_changed: () => null,
  call_cancelled: (data, fold) => action(data, fold),
  window_began: (data, fold) => noted(data, fold),
  phase_blocked: (data, fold) => phase(data, fold, lookOf("outcome", "timeout"), (row) => ` has an issue${named(row.blockers?.at(-1))}`),
  task_released: (data) => [lookOf("approval", "approved"), `${data.task_id} may be tried again`],
  phase_started: (data, fold) => phase(data, fold, lookOf("outcome", "running"), (row) => ` began${named(row.description)}`),
  phase_ended: (data, fold) => phase(data, fold, lookOf("phase", rowOf("phase", data, fold)?.outcome || "success"), ended),
  phase_overdue: (data, fold) => phase(data, fold, lookOf("outcome", "timeout"), () => ` takes ${data.factor >= 2 ? "more than twice as long as" : "longer than"} expected`),
  stuck: (data, fold) => [lookOf("tool_loop", data.action === "halt" ? "Halted" : "ErrorRecovery"), `${agentName(data.agent_id, fold)} is stuck (${ruleWords(data.rule)})${named(data.sentence)}${data.action === "halt" ? "; it was halted" : "; it was told so"}`],
  suspected: (data, fold) => [lookOf("agent", "CONTINUE"), `${agentName(data.agent_id, fold)} may be stuck (${ruleWords(data.rule)}); an arbiter is asked${named(data.sentence)}`],
  ruled: (data, fold) => [lookOf("agent", "CONTINUE"), `An arbiter says that ${agentName(data.agent_id, fold)} is ${data.stuck ? "stuck" : "not stuck"}${named(data.why)}`],
  progress: (data, fold) => [lookOf("agent", "CONTINUE"), `${agentName(data.agent_id, fold)}: ${plural(data.files_modified ?? 0, "file")} changed, of its last actions ${data.recent_successes} went well and ${data.recent_failures} failed`],
  identity_accepted: () => [lookOf("agent", "CONTINUE"), "Somebody said to go on anyway: this loop is none from now on"],
  loop_labelled: (data, fold) => labelled(data, fold),
  hook_failed: (data) => [lookOf("agent", "ERROR"), `The hook ${data.hook} failed${named(data.message)}`],
  call_progressed: (data) => [lookOf("outcome", "running"), `A ${data.tool} works for ${duration(1000 * data.seconds)}${data.percent === null ? "" : `, ${data.percent} % done`}: ${plural(data.lines, "line")} so far`],
  agent_planned: (data, fold) => [lookOf("agent", "CONTINUE"), `${agentName(data.agent_id, fold)} has done ${data.done} of ${plural(data.of, "part")} of its plan${named(data.now)}`],
  agent_said: (data, fold) => noted(data, fold),
  agent_thought: (data, fold) => [lookOf("agent", "PENDING"), `${agentName(data.agent_id, fold)} thinks${named(data.text)}`],
  agent_turn_ended: () => null,
  leave_given: (data, fold) => [lookOf("approval", "approved"), `${agentName(data.agent_id, fold)} may, by a policy${named(data.target)}`],
  leave_refused: (data, fold) => [lookOf("approval", "rejected"), `${agentName(data.agent_id, fold)} may not${named(data.reason || data.target)}`],
  violation: (data, fold) => [lookOf("outcome", "failed"), `${agentName(data.agent_id, fold)} did what it had no leave for${named(data.title)}`],
  page_reopened: (data) => [lookOf("event", "edited"), `A page of a browser that was gone is open again: ${data.address}`],
  page_not_reopened: (data) => [lookOf("event", "edited"), `A page of a browser that was gone stays closed: ${data.address}${named(data.why)}`],
  app_process: (data, fold) => [lookOf("event", "edited"), `${agentName(data.agent_id, fold)} works on ${data.name}, process ${data.pid}`],
  blackboard_changed: (data, fold) => written(data, fold),
};

// The sentence of a tool loop's change of state: of those in which it stands still, or goes on after that, and of those that
// end a call or hold something that was said.
export function loopChanged(data, fold) {
  const name = agentName(fold.recall("loop", data.id)?.agent_id, fold);
  const words = {
    ResourcePaused: `${name} stands still until its device is ready again${named(data.reason)}`,
    Halted: `${name} was halted${named(reasonWords(data.reason))}`,
  }[data.to_state];
  if (words) return [lookOf("tool_loop", data.to_state), words];
  if (data.from_state === "ResourcePaused") return [lookOf("agent", "CONTINUE"), `${name} goes on: its device is ready again`];
  return data.set?.evidence || data.add?.evidence?.[0]?.ended_at ? (noted(data, fold) ?? action(data, fold)) : null;
}

function rowOf(table, data, fold) {
  const [added] = data.add?.[table] ?? [];
  const id = added?.id ?? data[`${table}_id`] ?? Object.keys(data.set?.[table] ?? {})[0];
  return fold.recall(table, id) ?? added;
}

function about(data, fold, look, words) {
  const row = { kind: data.kind, title: data.title, ...rowOf("approval", data, fold) };
  return [look, `${words(row)}${named(row.title)}`];
}

function yes(data) {
  return String(data.decision).startsWith("approve");
}

function decision(data, row) {
  const [well, ill] = DECIDED[row.kind] ?? ["Approved", "Rejected"];
  return yes(data) ? well : ill;
}

function action(data, fold) {
  const row = rowOf("evidence", data, fold);
  if (!row || SILENT.has(row.kind)) return null;
  const spent = row.started_at && row.ended_at ? ` (${duration(Date.parse(row.ended_at) - Date.parse(row.started_at))})` : "";
  const what = shorten([row.tool, row.target].filter(Boolean).join(" "), LONGEST_TARGET) || row.kind;
  if (row.success) return [lookOf("went", "well"), `${what}${spent}`];
  return [lookOf("went", "failed"), `${what} failed${spent}${named(row.raw_error || row.error_kind)}`];
}

function noted(data, fold) {
  const row = rowOf("evidence", data, fold);
  const name = agentName(fold.recall("loop", row?.loop_id)?.agent_id, fold);
  if (row?.kind === "message") return [lookOf("agent", "CONTINUE"), `${name} says${named(row.target || row.arguments?.text)}`];
  return NOTES[row?.kind] ? [lookOf("agent", "START"), `${NOTES[row.kind]} ${name}`] : null;
}

function phase(data, fold, look, words) {
  const row = rowOf("phase", data, fold) ?? data;
  const of = row.total ? ` of ${row.total}` : "";
  return [look, `Phase ${row.number ?? data.number}${of}${words(row)}`];
}

function ended(row) {
  const blocked = row.blockers?.length ? named(row.blockers.join("; ")) : "";
  return row.outcome === "completed_with_issues" ? ` ended with issues${blocked}` : ` ended well${blocked}`;
}

function written(data, fold) {
  const [id] = Object.keys(data.set?.agent ?? {});
  const keys = data.keys ?? Object.keys(data.set?.agent?.[id]?.blackboard ?? {});
  if (!keys.length) return null;
  const rest = keys.length > LONGEST_LIST ? " and more" : "";
  return [lookOf("event", "edited"), `On the blackboard of ${agentName(data.agent_id ?? id, fold)}: ${keys.slice(0, LONGEST_LIST).join(", ")}${rest}`];
}

function labelled(data, fold) {
  const label = data.set?.loop?.[data.loop_id]?.label ?? {};
  const name = agentName(fold.recall("loop", data.loop_id)?.agent_id, fold);
  return [lookOf("event", "edited"), `Somebody says that ${name} was ${label.stuck ? `stuck since row ${label.since}` : "not stuck"}${named(label.reason)}`];
}

function agentName(id, fold) {
  return fold.recall("agent", id)?.name || "An agent";
}

function named(text) {
  return text ? `: ${shorten(String(text), LONGEST_TEXT)}` : "";
}
