// Events as sentences. Pure. A sentence is {tone, shape, parts}, a part being text, {task: row id, text} or {author, text}.

import { edited } from "./edit_sentences.js";
import { brief, duration, plural, shorten } from "./format.js";
import { lookOf, machineLook, reasonWords, taskLook } from "./states.js";
import { WORK, loopChanged } from "./work_sentences.js";

const LONGEST_LIST = 4; // names in one sentence
const LONGEST_REASON = 160; // characters

const TASK_WORDS = {
  RUNNING: (told, task, name) => ` started on ${name}${task.attempt > 1 ? `, attempt ${task.attempt}` : ""}`,
  COMPLETED: (told) => ` completed${spent(told)}`,
  FAILED: (told, task) => ` failed${spent(told)}${because(task.error || told.reason)}`,
  CANCELLED: (told) => (told.event === "skip" ? ` was skipped${because(told.reason.replace(/^skipped:?\s*/, ""))}` : ` was cancelled${because(told.reason)}`),
  PENDING: (told) => (told.from_state === "RUNNING" ? ` will be tried again${because(told.reason)}` : told.event === "retry" ? " is to run again" : " is ready"),
  WAITING_DEPENDENCY: (told) => (told.event === "revive" ? " may run after all" : " waits for other tasks"),
};

const PLAIN = {
  session_created: () => ["The session was opened"],
  session_changed: () => ["What was chosen for the session was changed"],
  child_created: (data) => [`Session ${data.session_id} was started from this one`],
  actor_created: () => ["An actor was assigned to the session"],
  command_received: (data) => received(data),
  command_done: (data, fold) => command(data, fold),
  interaction_started: () => ["Work on the request began"],
  interaction_ended: (data) => ended(data),
  agent_created: (data) => [`${data.add?.agent?.[0]?.name ?? "An agent"} began`],
  actor_pausing: () => ["The actor pauses when the command in flight has ended"],
  actor_resumed: () => ["The actor goes on"],
  actor_pinged: () => ["The actor was pinged"],
  command_started: () => ["A command is being carried out"],
  constellation_created: (data) => created(data.add?.constellation?.[0]),
  constellation_built: (data, fold, leftOut) => [`The graph was built: ${counted(data, leftOut)}`],
  edit_refused: (data) => [`The edit of the rule ${data.rule ?? ""} was refused${because(data.message)}`],
  model_asked: (data) => [ASKED[first(data.add?.model_call)?.purpose] ?? "A model is asked"],
  task_drafted: (data) => [`The model writes down ${named(data.tasks ?? [])}`],
  model_answered: (data) => [answered(first(data.set?.model_call) ?? {})],
  retry_due: () => ["A failed task is due again"],
  approved: (data) => [`The task ${data.task_id ?? ""} was approved`],
  condition_unknown: (data) => [`A condition could not be decided: ${data.message ?? ""}`],
  device_state_changed: (data) => [`The device ${data.name} went from ${data.from_state} to ${data.to_state}`],
  stopped: (data) => [`${data.terminal === false ? "What ran was cut off" : "Work stopped"}${because(data.reason)}`],
};

const ASKED = {
  creation: "A model is asked for a plan",
  editing: "A model is asked what follows from what has ended",
  device_agent: "An agent asks its model what to do next",
  summary: "An agent's model is asked to sum up what was said",
};

const MOVED = {
  tasks_skipped: ["SKIPPED", "skipped"],
  tasks_cancelled: ["CANCELLED", "cancelled"],
  tasks_retried: ["PENDING", "to run again"],
};

// The sentence of `event`, {tone, shape, parts, states}, or null for one that says nothing to a reader; `states` are the machine's
// own names, of what went from one to another. `deviceName(task)` names a task's device, `personOf` an author where the reader
// knows names.
export function sentence(event, fold, deviceName, personOf = null) {
  if (event.type === "state_changed") return changed(event.data, fold, deviceName);
  if (event.data.transitions) return moved(event, fold);
  if (WORK[event.type]) return told(WORK[event.type](event.data, fold));
  if (event.type === "edited") return told(edited(event.data, personOf !== null), personOf);
  const words = PLAIN[event.type];
  if (words) return { ...toneOf(event), parts: words(event.data, fold, event.left_out) };
  if (event.type === "ends_taken") return null; // what the planner makes of them is told
  if (event.type.startsWith("output") || event.type.startsWith("attempt")) return null;
  return { ...toneOf(event), parts: [event.type.replaceAll("_", " ")] };
}

function told(found, personOf = null) {
  if (!found) return null;
  const [{ tone, shape }, text, author] = found;
  return { tone, shape, parts: personOf ? [{ author, text: atBeginning(personOf(author)) }, text] : [text] };
}

const FIRST_WORDS = { you: "You", planner: "The planner", system: "The system" };

// An author as the first word of a sentence; who is called "anna" stays so.
export function atBeginning(name) {
  return FIRST_WORDS[name] ?? name;
}

function changed(data, fold, deviceName) {
  if (data.from_state === data.to_state) return null;
  if (data.machine === "task") return taskChanged(data, fold, deviceName);
  if (data.machine === "tool_loop") return told(loopChanged(data, fold));
  if (data.event === "captured") return null; // that it looks was said
  const look = machineLook(data.machine, data.to_state);
  const words = { actor: actorChanged, constellation: graphChanged }[data.machine] ?? agentChanged;
  return { tone: look.tone, shape: look.shape, parts: [words(data, look, fold)], states: `${data.from_state} → ${data.to_state}` };
}

function taskChanged(data, fold, deviceName) {
  const known = fold.recall("task", data.id) ?? { task_id: `task ${data.id}`, state: data.to_state, reason: "" };
  const task = { ...known, ...data.set?.task?.[data.id] }; // as it was then: of an earlier event the row has gone on
  const look = taskLook({ ...task, state: data.to_state, reason: data.reason ?? "" });
  const words = TASK_WORDS[data.to_state]?.(data, task, deviceName(task) || "a device") ?? ` is ${look.word}`;
  return { tone: look.tone, shape: look.shape, parts: [linked(task, data.id, fold), words] };
}

function actorChanged(data, look) {
  const reason = data.to_state === "idle" && data.reason ? lookOf("outcome", data.reason).word.toLowerCase() : data.reason;
  return `The actor is ${look.word.toLowerCase()}${because(reason)}`;
}

const GRAPH_WORDS = { resume: "goes on", reopen: "was reopened" }; // by event: EXECUTING alone would not tell them apart

function graphChanged(data, look) {
  return `The constellation ${GRAPH_WORDS[data.event] ?? `is ${look.word.toLowerCase()}`}${because(data.reason)}`;
}

// {id: "stream << 24 | n"}: the id of a constellation has its session in it.
function created(row) {
  const words = `The constellation ${row?.name ?? ""} was created`;
  if (row?.replaces_id) return [`${words} in the place of the one before`];
  if (!row?.forked_from_id) return [words];
  return [`${words} as a fork of one in session ${Math.floor(row.forked_from_id / 2 ** 24)}, as it was after event ${row.forked_at}`];
}

const AGENT_WORDS = {
  START: "starts",
  CONTINUE: "is at work",
  PENDING: "waits",
  CONFIRM: "waits for a person",
  SCREENSHOT: "looks",
  FINISH: "finished",
  FAIL: "failed",
  ERROR: "broke",
};

function agentChanged(data, look, fold) {
  const name = fold.get("agent", data.id)?.name || "agent";
  const who = data.machine === "device_agent" ? `Agent of ${name}` : `The ${name}`;
  const does = AGENT_WORDS[data.to_state] ?? `is ${look.word.toLowerCase()}`;
  return `${who} ${does}${data.reason === does ? "" : because(data.reason)}`;
}

// Many tasks that one event moved.
function moved(event, fold) {
  const told = event.data.transitions;
  const [state, verb] = MOVED[event.type] ?? ["CANCELLED", "cancelled"];
  const look = lookOf("task", state);
  const parts = [`${plural(told.length, "task")} ${verb}: `];
  told.slice(0, LONGEST_LIST).forEach((one, i) => {
    const task = fold.recall("task", one.id) ?? { task_id: `task ${one.id}` };
    parts.push(i ? ", " : "", linked(task, one.id, fold));
  });
  if (told.length > LONGEST_LIST) parts.push(` and ${told.length - LONGEST_LIST} more`);
  if (told.length === 1) parts.push(because((told[0].reason ?? "").replace(/^skipped:?\s*/, "")));
  return { tone: look.tone, shape: look.shape, parts };
}

function received(data) {
  const item = data.add?.inbox?.[0];
  if (!item) return ["A command was received"];
  if (item.kind === "interaction") return [`A request was received${because(item.payload?.request)}`];
  return [`The command “${item.kind}” was received${because(item.payload?.reason)}`];
}

function command(data, fold) {
  const [id, item] = Object.entries(data.set?.inbox ?? {})[0] ?? [];
  const kind = fold.recall("inbox", id)?.kind;
  return [`${kind ? `The command “${kind}”` : "A command"} was ${item?.state === "refused" ? "refused" : "carried out"}${because(item?.outcome)}`];
}

function ended(data) {
  const item = first(data.set?.inbox);
  const look = lookOf("outcome", item?.outcome ?? "completed");
  const summary = item?.result?.summary ?? brief(item?.result);
  return [`The request ended: ${look.word.toLowerCase()}${because(summary)}`];
}

function counted(data, leftOut = {}) {
  const [tasks, edges] = ["task", "dependency"].map((table) => (data.add?.[table]?.length ?? 0) + (leftOut[table] ?? 0));
  return [tasks ? plural(tasks, "task") : "", edges ? `${edges} ${edges === 1 ? "dependency" : "dependencies"}` : ""].filter(Boolean).join(", ") || "empty";
}

function toneOf(event) {
  if (event.type === "interaction_ended") return lookOf("outcome", first(event.data.set?.inbox)?.outcome ?? "completed");
  if (["condition_unknown", "edit_refused", "stopped"].includes(event.type)) return lookOf("agent", "ERROR");
  return lookOf("agent", "START");
}

function first(rows) {
  return rows && Object.values(rows)[0];
}

function linked(task, id, fold) {
  const text = task.name || task.task_id;
  return fold.get("task", id) ? { task: id, text } : text;
}

function because(reason) {
  return reason ? `: ${shorten(reasonWords(String(reason)), LONGEST_REASON)}` : "";
}

function spent(told) {
  return typeof told.spent === "number" ? ` after ${duration(told.spent * 1000)}` : "";
}

// Of tasks that are not in the graph yet.
function named(tasks) {
  const names = tasks.slice(0, LONGEST_LIST).map((task) => task.name || task.task_id);
  return names.join(", ") + (tasks.length > names.length ? ` and ${tasks.length - names.length} more` : "");
}

function answered(call) {
  if (call.outcome === "lost") return "The model's answer was lost with its runner, so it is asked again";
  if (call.outcome === "cancelled") return "The model was interrupted";
  if (call.error) return `The model's answer is of no use${because(call.error)}`;
  return call.thought ? `The model thinks: ${shorten(call.thought, LONGEST_REASON)}` : "The model answered";
}
