// REST, as far as the pages use it. Refusals become `Refused`, with the places that the problem document names.

const TIMEOUT_MS = 15_000;
const APPROVALS_LIMIT = 100; // shown at once

export class Refused extends Error {
  // `problem` is the body of application/problem+json: {title, detail, status, code, problems: [{line, key, message}]}.
  constructor(problem) {
    super(problem.detail || problem.title || "The server refused the request");
    this.name = "Refused";
    this.status = problem.status;
    this.problems = problem.problems ?? [];
  }
}

// A session and its first request: both are made, or neither.
export function createSession(title, payload) {
  return call("POST", "/api/sessions/", { title, client_id: clientId(), ...payload });
}

export function submitRequest(session, payload) {
  return call("POST", `/api/sessions/${session}/interactions/`, { client_id: clientId(), ...payload });
}

export function sendCommand(session, kind, reason) {
  return call("POST", `/api/sessions/${session}/commands/`, { client_id: clientId(), kind, reason });
}

// How many approvals and questions wait for people: {waiting, more: whether there are more than that}.
export function waitingCount() {
  return call("GET", "/approvals/count/");
}

// The latest of them: {results, next: null where these are all}.
export function waitingApprovals() {
  return call("GET", `/api/approvals/?state=waiting&limit=${APPROVALS_LIMIT}`);
}

// Where they come from: {id: {session, task, device}}, names or empty.
export function approvalPlaces() {
  return call("GET", "/approvals/places/");
}

// `body`: {decision: "approve" | "reject", digest, arguments?, answer?, reason?}.
export function decideApproval(row, body) {
  return call("POST", `/api/approvals/${row}/decision`, body);
}

// Says that what was taken for a loop is none.
export function goOn(session, agent, identity) {
  return call("POST", `/api/sessions/${session}/commands/`, { client_id: clientId(), kind: "go_on", agent, identity });
}

export function events(session, since, limit) {
  return call("GET", `/api/sessions/${session}/events/?since=${since}&limit=${limit}`);
}

export function session(id) {
  return call("GET", `/api/sessions/${id}/`);
}

export function devices() {
  return call("GET", "/api/devices/");
}

// With `output`, the end of what the last attempt printed: {attempt, offset, text}, or null.
export function task(row) {
  return call("GET", `/api/tasks/${row}/`);
}

// What attempt `number` printed from character `offset` on: {attempt, offset, text}.
export function output(row, number, offset) {
  return call("GET", `/api/tasks/${row}/output/?attempt=${number}&offset=${offset}`);
}

// The same id sent twice is one request, so a click that is repeated after a lost answer does no harm.
function clientId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function call(method, path, body) {
  const headers = { Accept: "application/json" };
  if (body) Object.assign(headers, { "Content-Type": "application/json", "X-CSRFToken": csrfToken() });
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
