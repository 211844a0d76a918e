// REST, as far as the pages use it. Refusals become `Refused`, with the places that the problem document names.

const TIMEOUT_MS = 15_000;
const DEVICES_LIMIT = 500;
const ROWS_TOLD = 20; // of what one event adds

export class Refused extends Error {
  // `problem` is the body of application/problem+json: {title, detail, status, code, problems: [{line, key, message}]}.
  constructor(problem) {
    super(problem.detail || problem.title || "The server refused the request");
    this.name = "Refused";
    this.status = problem.status;
    this.problems = problem.problems ?? [];
    this.between = problem.between ?? []; // of an edit that clashes: what others have changed
  }
}

// A session and its first request: both are made, or neither.
export function createSession(title, payload) {
  return call("POST", "/api/sessions/", { title, client_id: clientId(), ...payload });
}

// What a plan would become: {tasks, dependencies}; `Refused` says what is wrong with it.
export function checkPlan(document) {
  return call("POST", "/api/import/check/", { document, dialect: "orrery" });
}

export function submitRequest(session, payload) {
  return call("POST", `/api/sessions/${session}/interactions/`, { client_id: clientId(), ...payload });
}

export function sendCommand(session, kind, reason, id = clientId()) {
  return call("POST", `/api/sessions/${session}/commands/`, { client_id: id, kind, reason });
}

// All failed tasks of a constellation begin again, unless somebody has edited it since `version`.
export function retryFailed(constellation, id) {
  return call("POST", `/api/constellations/${constellation}/retry/`, { client_id: id });
}

// These tasks begin again, all of them or none.
export function retryTasks(constellation, taskIds, id) {
  return call("POST", `/api/constellations/${constellation}/retry/`, { client_id: id, tasks: taskIds });
}

export function cancelTask(row, reason, id) {
  return call("POST", `/api/tasks/${row}/cancel/`, { client_id: id, reason });
}

export function skipTask(row, reason, id) {
  return call("POST", `/api/tasks/${row}/skip/`, { client_id: id, reason });
}

export function restartConstellation(constellation, reason, id) {
  return call("POST", `/api/constellations/${constellation}/commands/`, { client_id: id, kind: "restart", reason });
}

// A new session that goes on from a constellation as it was after event `seq`: {session, interaction, created}.
export function forkConstellation(constellation, seq, id) {
  return call("POST", `/api/constellations/${constellation}/fork/`, { client_id: id, seq });
}

// The sessions of the home page: {results, next, now}; `query` is what is asked for, as URLSearchParams.
export function home(query) {
  return call("GET", `/api/home/?${query}`);
}

// How much waits for who looks: {waiting, more: whether there is more than that}.
export function waitingCount() {
  return call("GET", "/inbox/count/");
}

// All that waits for a person, and what is worth a look: {entries, more: whether approvals were left out}.
export function inbox() {
  return call("GET", "/api/inbox/");
}

// What was decided, newest first, from before an approval on: {entries, next}.
export function decided(before) {
  return call("GET", `/api/inbox/decided/${before === null ? "" : `?before=${before}`}`);
}

export function approval(row) {
  return call("GET", `/api/approvals/${row}/`);
}

// Lets a plan that waits for it begin.
export function startPlan(constellation) {
  return call("POST", `/api/constellations/${constellation}/start/`, {});
}

// {group: {hits, next}}; `more`: of one group only, from before a row on.
export function search(text, more = {}) {
  return call("GET", `/api/search/?${new URLSearchParams({ q: text, ...more })}`);
}

// The plans of the latest runs: {results}.
export function plans() {
  return call("GET", "/api/runs/");
}

// The runs of one plan: {name, runs, tasks: [{task_id, name, cells}]}.
export function runsOf(plan) {
  return call("GET", `/api/runs/${plan}/`);
}

// `body`: {decision: "approve" | "reject", digest, arguments?, answer?, reason?}.
export function decideApproval(row, body) {
  return call("POST", `/api/approvals/${row}/decision`, body);
}

// Says that what was taken for a loop is none.
export function goOn(session, agent, identity, id = clientId()) {
  return call("POST", `/api/sessions/${session}/commands/`, { client_id: id, kind: "go_on", agent, identity });
}

// What a person says of a run: {stuck, since: number of a row where it was, reason}.
export function labelAgent(agent, said) {
  return call("PUT", `/api/agents/${agent}/label`, said);
}

export function events(session, since, limit) {
  return call("GET", `/api/sessions/${session}/events/?since=${since}&limit=${limit}`);
}

// The same to be read: of what an event adds a few rows, and in `left_out` how many more there are: {table: number}.
export function eventsToTell(session, since, limit) {
  return call("GET", `/api/sessions/${session}/events/?since=${since}&limit=${limit}&most_rows=${ROWS_TOLD}`);
}

// The names of all who did something in a session, by author as records name them.
export function people(session) {
  return call("GET", `/api/sessions/${session}/people/`);
}

// A session by columns, now: {seq, at, head, tables: {name: {columns, rows}}, not_kept}. The page's head has asked for it already.
export function present(session) {
  return call("GET", `/api/sessions/${session}/snapshot/`);
}

// How it was after event `seq`, as what differs from event `since`: {seq, at, since, tables, changed, gone, not_kept}, where `since`
// is 0 if all rows are known sooner.
export function moment(session, seq, since) {
  return call("GET", `/api/sessions/${session}/snapshot/?seq=${seq}&since=${since}`);
}

// When things happened: {first_at, last_at, head, buckets: [{at, seq, events, edits, failures}], marks: [{seq, at, kind, by, text}]}.
export function density(session, buckets) {
  return call("GET", `/api/sessions/${session}/density/?buckets=${buckets}`);
}

export function session(id) {
  return call("GET", `/api/sessions/${id}/`);
}

// All that are not retired, as far as one page goes: {results, next}.
export function devices() {
  return call("GET", `/api/devices/?limit=${DEVICES_LIMIT}`);
}

export function device(id) {
  return call("GET", `/api/devices/${id}/`);
}

export function makeDevice(said) {
  return call("POST", "/api/devices/", said);
}

export function changeDevice(id, said) {
  return call("PATCH", `/api/devices/${id}/`, said);
}

// `what`: drain, undrain, offline, online or reset.
export function askDevice(id, what) {
  return call("POST", `/api/devices/${id}/${what}/`, {});
}

// What would become of its work: {ends, moves, nowhere}, each {total, tasks}.
export function previewDrain(id) {
  return call("GET", `/api/devices/${id}/drain/`);
}

export function retireDevice(id) {
  return call("DELETE", `/api/devices/${id}/`);
}

// What became of a device, oldest first, page by page.
export async function deviceHistory(id) {
  const events = [];
  for (let since = 0; since !== null; ) {
    const page = await call("GET", `/api/devices/${id}/history/?since=${since}`);
    events.push(...page.results);
    since = page.next;
  }
  return events;
}

// How a device was in the last day, every five minutes, oldest first: {results}.
export function deviceReadings(id) {
  return call("GET", `/api/devices/${id}/readings/`);
}

// {token, ...}: a token for one enrolment, shown this once.
export function enrolDevice(id) {
  return call("POST", `/api/devices/${id}/enrolment/`, {});
}

// {token, ...}: the device's next token, shown this once.
export function rotateToken(id) {
  return call("POST", `/api/devices/${id}/tokens/rotate/`, {});
}

export function revokeTokens(id) {
  return call("DELETE", `/api/devices/${id}/tokens/`);
}

// With `output`, the end of what the last attempt printed: {attempt, offset, text}, or null.
export function task(row) {
  return call("GET", `/api/tasks/${row}/`);
}

// What attempt `number` printed from character `offset` on: {attempt, offset, text}.
export function output(row, number, offset) {
  return call("GET", `/api/tasks/${row}/output/?attempt=${number}&offset=${offset}`);
}

// A page of all that a session printed: {pieces, first, last, more}; `query`: {after, before, task, attempt, limit}.
export function sessionLog(session, query) {
  return call("GET", `/api/sessions/${session}/log/?${new URLSearchParams(query)}`);
}

// Where a text stands in what a session printed: {hits: [{attempt, number, task, task_id, offset, excerpt}], next}.
export function searchOutputs(session, query) {
  return call("GET", `/api/sessions/${session}/search/?${new URLSearchParams(query)}`);
}

// Transitions of all machines between two moments (ISO): {columns, rows, truncated}.
export function sessionTimeline(session, from, until) {
  return call("GET", `/api/sessions/${session}/timeline/?${new URLSearchParams({ from, until })}`);
}

// By operation, the JSON Schema of its parameters.
export function editingForms() {
  return call("GET", "/editing/forms/");
}

// What operations would do, on the newest version: {version, newest, between, diff, consequences}.
export function previewEdit(constellation, operations, version) {
  return call("POST", `/api/constellations/${constellation}/preview/`, { operations, based_on: version });
}

// `body`: {operations, based_on, reason, edit_id}. Answers {edit, changed, proposal, version, newest, between}.
export function makeEdit(constellation, body) {
  return call("POST", `/api/constellations/${constellation}/edits/`, body);
}

// The whole of one edit.
export function editMade(constellation, edit) {
  return call("GET", `/api/constellations/${constellation}/edits/${edit}/`);
}

export function undoEdit(constellation, edit, id) {
  return call("POST", `/api/constellations/${constellation}/edits/${edit}/undo/`, { edit_id: id });
}

// Why a task is not running: {kind, text, fields}.
export function whyWaiting(row) {
  return call("GET", `/api/tasks/${row}/why/`);
}

export function retryTask(row, id) {
  return call("POST", `/api/tasks/${row}/retry/`, { client_id: id });
}

// `what`: cancel or skip.
export function endTask(row, what, reason, id) {
  return call("POST", `/api/tasks/${row}/${what}/`, { client_id: id, reason });
}

// How a row came to its state, oldest first: {results, next}. `kind`: tasks or agents.
export function transitionsOf(kind, row, cursor = 0) {
  return call("GET", `/api/${kind}/${row}/transitions/?cursor=${cursor}`);
}

// The drawing of a machine, in pixels: {width, height, start, nodes, edges}.
export function machineDiagram(name) {
  return call("GET", `/machines/${name}/diagram/`);
}

// One call of a model with its system prompt.
export function modelCall(row) {
  return call("GET", `/api/model_calls/${row}/`);
}

// The same id sent twice is one request, so a click that is repeated after a lost answer does no harm.
export function clientId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function call(method, path, body) {
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["X-CSRFToken"] = csrfToken();
  if (body) headers["Content-Type"] = "application/json";
  const request = { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(TIMEOUT_MS) };
  const response = await fetch(path, request);
  const answer = await json(response);
  if (!response.ok) throw new Refused({ status: response.status, title: `${response.status} ${response.statusText}`, ...answer });
  return answer;
}

async function json(response) {
  const kind = response.headers.get("Content-Type") ?? "";
  return kind.includes("json") ? response.json() : null;
}

function csrfToken() {
  return document.querySelector("[name=csrfmiddlewaretoken]").value;
}
