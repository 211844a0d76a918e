// How states look: a word, a tone (colour, see tokens.css) and a shape, so that colour is never the only sign. Pure.

// Shapes are stroked lines (lists of x, y) and a circle (x, y, radius) in a box of 16 x 16.
const SHAPES = {
  dots: { lines: [[3.2, 8, 3.3, 8], [8, 8, 8.1, 8], [12.8, 8, 12.9, 8]] },
  clock: { lines: [[8, 4.2, 8, 8, 10.6, 9.8]], circle: [8, 8, 6] },
  play: { lines: [[5.5, 3.5, 5.5, 12.5, 12.5, 8, 5.5, 3.5, 5.5, 5]] },
  check: { lines: [[3, 8.6, 6.3, 12, 13, 4.6]] },
  cross: { lines: [[4, 4, 12, 12], [12, 4, 4, 12]] },
  bar: { lines: [[3.8, 12.2, 12.2, 3.8]], circle: [8, 8, 6] },
  skip: { lines: [[3.4, 4, 7.4, 8, 3.4, 12], [8.6, 4, 12.6, 8, 8.6, 12]] },
  pause: { lines: [[5.5, 3.5, 5.5, 12.5], [10.5, 3.5, 10.5, 12.5]] },
  half: { lines: [[8, 2.6, 8, 8.8], [8, 12.6, 8, 12.7]] },
  ask: { lines: [[5.5, 5.8, 6.3, 4.2, 8, 3.5, 9.8, 4.2, 10.4, 5.9, 9.6, 7.5, 8, 8.6, 8, 9.9], [8, 12.9, 8, 13]] },
  ring: { lines: [], circle: [8, 8, 5] },
  pen: { lines: [[3.4, 12.6, 4.2, 9.4, 10.6, 3, 13, 5.4, 6.6, 11.8, 3.4, 12.6]] },
};

// The path of a shape whose box begins at (x, y).
export function shapePath({ lines, circle }, x = 0, y = 0, scale = 1) {
  const parts = lines.map((line) => {
    const points = [];
    for (let i = 0; i < line.length; i += 2) points.push(`${x + line[i] * scale} ${y + line[i + 1] * scale}`);
    return `M${points.join("L")}`;
  });
  if (circle) {
    const [cx, cy, r] = [x + circle[0] * scale, y + circle[1] * scale, circle[2] * scale];
    parts.push(`M${cx - r} ${cy}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`);
  }
  return parts.join("");
}

// The words of a task's priority, which rows have as its place among them.
export const PRIORITIES = ["LOW", "MEDIUM", "HIGH", "CRITICAL"];

const LOOKS = {
  task: {
    WAITING_DEPENDENCY: ["Waiting", "waiting", "dots"],
    PENDING: ["Pending", "pending", "clock"],
    RUNNING: ["Running", "running", "play"],
    COMPLETED: ["Completed", "done", "check"],
    FAILED: ["Failed", "failed", "cross"],
    CANCELLED: ["Cancelled", "cancelled", "bar"],
    SKIPPED: ["Skipped", "cancelled", "skip"],
  },
  actor: {
    created: ["Created", "waiting", "ring"],
    idle: ["Idle", "pending", "ring"],
    running: ["Running", "running", "play"],
    paused: ["Paused", "held", "pause"],
    completed: ["Completed", "done", "check"],
    error: ["Error", "failed", "cross"],
    cancelled: ["Cancelled", "cancelled", "bar"],
  },
  agent: {
    START: ["Starting", "pending", "ring"],
    CONTINUE: ["At work", "running", "play"],
    PENDING: ["Waiting", "pending", "clock"],
    CONFIRM: ["Waiting for a person", "held", "ask"],
    SCREENSHOT: ["Looking", "pending", "ring"],
    FINISH: ["Finished", "done", "check"],
    FAIL: ["Failed", "failed", "cross"],
    ERROR: ["Error", "failed", "half"],
  },
  constellation: {
    CREATED: ["Created", "waiting", "ring"],
    READY: ["Ready", "pending", "ring"],
    EXECUTING: ["Executing", "running", "play"],
    PAUSED: ["Paused", "held", "pause"],
    COMPLETED: ["Completed", "done", "check"],
    PARTIALLY_FAILED: ["Partly failed", "held", "half"],
    FAILED: ["Failed", "failed", "cross"],
    CANCELLED: ["Cancelled", "cancelled", "bar"],
  },
  outcome: {
    completed: ["Completed", "done", "check"],
    partially_failed: ["Partly failed", "held", "half"],
    failed: ["Failed", "failed", "cross"],
    cancelled: ["Cancelled", "cancelled", "bar"],
    timeout: ["Timed out", "failed", "clock"],
    lost: ["Lost", "failed", "half"],
    queued: ["Queued", "waiting", "dots"],
    running: ["Running", "running", "play"],
    refused: ["Refused", "failed", "bar"],
  },
  tool_loop: {
    Idle: ["Idle", "waiting", "ring"],
    ProcessingPrompt: ["Processing the prompt", "pending", "dots"],
    StreamingResponse: ["Streaming the response", "done", "dots"],
    ExecutingTool: ["Executing a tool", "running", "play"],
    AwaitingPermission: ["Awaiting permission", "held", "ask"],
    ProgressCheck: ["Checking progress", "pending", "check"],
    ErrorRecovery: ["Recovering", "failed", "half"],
    PhaseTransition: ["Between phases", "cancelled", "skip"],
    ResourcePaused: ["Short of resources", "held", "pause"],
    Halted: ["Halted", "failed", "bar"],
  },
  standing: {
    stale: ["No runner", "failed", "bar"],
    waiting: ["Waiting for you", "held", "ask"],
    waiting_others: ["Waiting for others", "held", "ask"],
    review: ["Waiting to be started", "held", "ask"],
    paused: ["Paused", "held", "pause"],
    running: ["Running", "running", "play"],
    queued: ["Queued", "pending", "dots"],
    idle: ["Idle", "waiting", "ring"],
    completed: ["Completed", "done", "check"],
    partially_failed: ["Partly failed", "held", "half"],
    failed: ["Failed", "failed", "cross"],
    cancelled: ["Cancelled", "cancelled", "bar"],
    unknown: ["Not known", "waiting", "dots"],
  },
  stands: {
    needs_you: ["Needs you", "held", "ask"],
    needs_others: ["Needs somebody else", "held", "ask"],
    paused: ["Paused", "held", "pause"],
    cancelled: ["Cancelled", "cancelled", "bar"],
  },
  ask: {
    task: ["Before a task begins", "held", "ask"],
    tool: ["Permission for one call", "held", "play"],
    lost: ["After a lost attempt", "failed", "half"],
    question: ["Question", "pending", "ask"],
    elicitation: ["Question of a tool server", "pending", "ask"],
    edit: ["Proposed edit", "held", "pen"],
    budget: ["More budget", "held", "ask"],
    stuck: ["Stuck agent", "failed", "half"],
    plan: ["Plan to start", "held", "play"],
    device_lost: ["Device lost", "failed", "bar"],
    budget_used: ["Budget", "held", "half"],
    failed: ["Failed request", "failed", "cross"],
  },
  approval: {
    waiting: ["Waiting", "held", "ask"],
    approved: ["Approved", "done", "check"],
    rejected: ["Rejected", "failed", "cross"],
    expired: ["Expired", "failed", "clock"],
    withdrawn: ["Withdrawn", "cancelled", "bar"],
  },
  phase: {
    running: ["Under way", "running", "play"],
    success: ["Success", "done", "check"],
    completed_with_issues: ["With issues", "held", "half"],
  },
  plan: {
    pending: ["To do", "waiting", "ring"],
    in_progress: ["At it", "running", "play"],
    completed: ["Done", "done", "check"],
  },
  test: {
    passed: ["Passed", "done", "check"],
    failed: ["Failed", "failed", "cross"],
  },
  decision: {
    allow: ["Allow", "done", "check"],
    ask: ["Ask", "held", "ask"],
    deny: ["Deny", "failed", "bar"],
  },
  said: {
    stuck: ["Was stuck", "failed", "half"],
    free: ["Was not stuck", "done", "check"],
  },
  went: {
    well: ["Well", "done", "check"],
    failed: ["Failed", "failed", "cross"],
    running: ["Under way", "running", "play"],
  },
  event: {
    edited: ["Edited", "held", "pen"],
  },
  device: {
    disconnected: ["Disconnected", "held", "bar"],
    connecting: ["Connecting", "running", "play"],
    connected: ["Connected", "done", "ring"],
    idle: ["Idle", "done", "ring"],
    busy: ["Busy", "running", "play"],
    draining: ["Draining", "held", "half"],
    failed: ["Failed", "failed", "cross"],
    retired: ["Retired", "held", "cross"],
  },
};

// {word, tone, shape (see shapePath)} of a state; a state nobody listed is shown by its own name.
export function lookOf(machine, state) {
  const [word, tone, shape] = LOOKS[machine]?.[state] ?? [state, "waiting", "ring"];
  return { word, tone, shape: SHAPES[shape] };
}

// How a session stands, in the server's own words, with the shape that goes with them.
export function lookOfStanding({ name, word, tone }) {
  return { word, tone, shape: lookOf("standing", name).shape };
}

export function taskLook(task) {
  return lookOf("task", isSkipped(task) ? "SKIPPED" : task.state);
}

// Why a task or an agent is in its state, in words: a verdict is {"stuck:" and its rule}, and what it found may follow.
export function reasonWords(reason) {
  return reason.replace(/^stuck:(\w+)/, (_, rule) => `stuck: ${ruleWords(rule)}`);
}

// A rule of stuck detection without its code's spelling.
export function ruleWords(rule) {
  return rule.replaceAll("_", " ");
}

// A skipped task could never start; one that was cancelled could have.
export function isSkipped(task) {
  return task.state === "CANCELLED" && task.reason.startsWith("skipped");
}

const WAITS = new Set(["WAITING_DEPENDENCY", "PENDING"]);

// Whether an edit may still change it: what has started is as it is.
export function isChangeable(task) {
  return WAITS.has(task.state) || isSkipped(task);
}

// Of those that it may make: a person's retry begins the count anew, and what a pause interrupted is not in it.
export function attemptsMade(task) {
  return Math.max(0, task.attempt - (task.attempts_before ?? 0));
}

export const TASK_STATES = Object.keys(LOOKS.task).filter((state) => state !== "SKIPPED");
export const TASK_ENDED = new Set(["COMPLETED", "FAILED", "CANCELLED"]);

// The machines of agents share their states' look; other machines have their own.
export function machineLook(machine, state) {
  const kind = machine === "device_agent" || machine === "constellation_agent" ? "agent" : machine;
  return lookOf(kind, state);
}

// "held": the downstream task need not wait for it any more; "never": it keeps the downstream task from starting;
// "open": not decided. A condition's verdict shows in what became of the downstream task.
export function dependencyState(dependency, upstream, downstream) {
  if (!TASK_ENDED.has(upstream.state)) return "open";
  if (dependency.type === "UNCONDITIONAL" || dependency.type === "COMPLETION_ONLY") return "held";
  if (upstream.state !== "COMPLETED") return "never";
  if (dependency.type === "CONDITIONAL" && isSkipped(downstream)) {
    return `${downstream.reason} `.startsWith(`skipped: ${dependency.dependency_id} `) ? "never" : "open";
  }
  return "held";
}
