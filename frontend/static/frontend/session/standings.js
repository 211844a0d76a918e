// How tasks and agents stand for who looks: their own state, unless they wait for a person or their session stands still. Pure.
//
// In the order of a session's standing (agents/reads/standing.py): waiting for you, for others, paused, then the state itself.

import { newest } from "../fold.js";
import { isForPeople } from "../task_progress.js";
import { TASK_ENDED, lookOf, machineLook, taskLook } from "../states.js";

export const AGENT_ENDED = new Set(["FINISH", "FAIL", "ERROR"]);
const MOVES = ["approval", "actor", "constellation"]; // tables whose rows change how others stand
const IS_OVER = new Set(["cancelled", "error"]); // states of an actor after which nothing of its session goes on
const OUTCOMES = ["completed", "partially_failed", "failed", "cancelled"]; // of what was asked

// The name of what stands before a task's own state, or "". `needs`: "you", "others" or undefined; `actor`, `graph`: their states.
export function standsBefore({ state }, { needs, actor, graph }) {
  if (TASK_ENDED.has(state)) return "";
  if (IS_OVER.has(actor)) return "cancelled";
  if (needs) return `needs_${needs}`;
  if (actor === "paused" || (graph === "PAUSED" && state !== "RUNNING")) return "paused";
  return "";
}

export class Standings {
  #needs = new Map(); // "you" or "others" by id of task and agent
  #still = "";
  #outcomes = new Map(); // of attempts, by agent
  #outcomesAt = null;

  // `fold` is the one on view; `config` says who looks, why that person may not decide, and in which states an actor has ended.
  constructor(fold, { me, refusal, ended_states: ended = [] }) {
    Object.assign(this, { fold, me, refusal, ended, actor: "" });
  }

  // Takes up what changed, and notes in `changes` the tasks that now stand differently although their rows are the same.
  take(changes) {
    if (!changes.has(...MOVES) && !changes.restructured("task")) return;
    const before = this.#needs;
    this.#needs = this.#collect();
    for (const id of new Set([...before.keys(), ...this.#needs.keys()])) {
      if (before.get(id) !== this.#needs.get(id) && this.fold.get("task", id)) changes.note("task", id, false);
    }
    this.actor = this.#newestActor()?.state ?? "";
    const graphs = [...this.fold.table("constellation").values()].map(({ id, state }) => `${id} ${state === "PAUSED"}`);
    const still = `${this.actor === "paused"} ${IS_OVER.has(this.actor)} ${graphs}`;
    if (still === this.#still) return;
    this.#still = still;
    for (const task of this.fold.table("task").values()) if (!TASK_ENDED.has(task.state)) changes.note("task", task.id, false);
  }

  taskLook(task) {
    const graph = this.fold.get("constellation", task.constellation_id)?.state;
    const name = standsBefore(task, { needs: this.#needs.get(task.id), actor: this.actor, graph });
    return name ? lookOf("stands", name) : taskLook(task);
  }

  // Whose decision a task waits for: "you", "others", or "" where it waits for nobody's.
  needOf(task) {
    return (!TASK_ENDED.has(task.state) && !IS_OVER.has(this.actor) && this.#needs.get(task.id)) || "";
  }

  // What of a constellation waits for a person, tasks first: [{kind, id, whose}] as the page chooses things.
  // An approval that no task waits for is found by its agent, or by itself.
  needing(constellation) {
    const found = new Map();
    for (const row of this.fold.table("approval").values()) {
      if (!isForPeople(row)) continue;
      const task = this.fold.get("task", row.subject_id);
      const graph = task?.constellation_id ?? this.fold.get("constellation", row.subject_id)?.id ?? constellation;
      if (graph !== constellation || (task && !this.needOf(task))) continue;
      const agent = !task && this.fold.get("agent", row.agent_id);
      const [kind, id] = task ? ["task", task.id] : agent ? ["agent", agent.id] : ["approval", row.id];
      if (found.get(`${kind} ${id}`)?.whose !== "you") found.set(`${kind} ${id}`, { kind, id, whose: this.#whose(row) });
    }
    return [...found.values()].sort((a, b) => (b.kind === "task") - (a.kind === "task") || a.id - b.id);
  }

  // How the session stands by its rows alone, as the server says it of the present: {name, word, tone, shape, reason}.
  // Who held it is in no row, so that only the server knows of a session without a runner.
  session() {
    const actor = this.#newestActor();
    const waiting = [...this.fold.table("approval").values()].filter(isForPeople);
    const mine = waiting.filter((row) => this.#whose(row) === "you").length;
    const graph = newest(this.fold.table("constellation"))?.state;
    const asked = newest(this.fold.table("inbox"), (row) => row.kind === "interaction");
    const stands = (name, reason = "", word = lookOf("standing", name).word) => ({ ...lookOf("standing", name), name, reason, word });
    const counted = (name, count, reason) => stands(name, reason, `${lookOf("standing", name).word} (${count})`);

    if (mine) return counted("waiting", mine, "It goes on when you have decided what waits.");
    if (waiting.length) return counted("waiting_others", waiting.length, "What waits is for somebody else to decide.");
    if (graph === "READY") return stands("review", "What was planned runs once somebody starts it.");
    if (actor?.state === "paused") return stands("paused", actor.reason);
    if (graph === "PAUSED") return stands("paused", "Its graph is paused.");
    if (actor?.pausing) return stands("paused", "It pauses when what runs has ended.", "Pausing");
    if (actor?.state === "running") return stands("running");
    if (["queued", "running"].includes(asked?.state)) return stands("queued", "A runner takes it up.");
    if (actor?.state === "error") return stands("failed", actor.reason);
    if (asked) return stands(OUTCOMES.includes(asked.outcome) ? asked.outcome : "failed");
    if (actor?.state === "cancelled") return stands("cancelled", actor.reason);
    return stands("idle", "Nothing was asked yet.", this.ended.includes(actor?.state) ? "Ended" : "Idle");
  }

  // Its own state in words that need no machine's name (pages say that on hover); what stands before it says so.
  agentLook(agent) {
    const own = machineLook(agent.machine, agent.state);
    if (AGENT_ENDED.has(agent.state)) return own;
    if (IS_OVER.has(this.actor) || this.#wasCancelled(agent)) return lookOf("stands", "cancelled");
    const needs = this.#needs.get(agent.id);
    if (needs) return lookOf("stands", `needs_${needs}`);
    return this.actor === "paused" ? lookOf("stands", "paused") : own;
  }

  // By the last attempt of the agent, or of the one that made it.
  #wasCancelled(agent) {
    if (this.#outcomesAt !== this.fold.seq) {
      this.#outcomesAt = this.fold.seq;
      this.#outcomes = new Map();
      for (const attempt of this.fold.table("attempt").values()) this.#outcomes.set(attempt.agent_id, attempt.outcome);
    }
    return (this.#outcomes.get(agent.id) ?? this.#outcomes.get(agent.parent_id)) === "cancelled";
  }

  #collect() {
    const needs = new Map();
    for (const row of this.fold.table("approval").values()) {
      if (!isForPeople(row)) continue;
      for (const id of [row.subject_id, row.agent_id]) if (id && needs.get(id) !== "you") needs.set(id, this.#whose(row));
    }
    return needs;
  }

  #whose({ action }) {
    return this.refusal || action?.author === this.me ? "others" : "you";
  }

  #newestActor() {
    let found = null;
    for (const actor of this.fold.table("actor").values()) if (!found || actor.epoch > found.epoch) found = actor;
    return found;
  }
}
