// One task in full: its fields, result, attempts and the end of what its last attempt printed.

import { output, task as taskDetail } from "./api.js";
import { callLine } from "./command_line.js";
import { chip, element, setText } from "./dom.js";
import { between, clock, json, plural, shorten } from "./format.js";
import { PRIORITIES, attemptsMade, dependencyState, lookOf, taskLook } from "./states.js";
import { drawProgressOf, latestAttempt, progressOf } from "./task_progress.js";

const OUTPUT_MS = 1000; // between two looks at the output of a running attempt
const OUTPUT_TAIL = 16_000; // characters
const RESULT_SHOWN = 20_000;

export class Drawer {
  #timer = 0;
  #opener = null;

  constructor(host, { fold, deviceName, now, onFind, onClose }) {
    Object.assign(this, { host, fold, deviceName, now, onFind, onClose, row: null, printed: null });
    host.querySelector(".close").addEventListener("click", () => this.close());
    host.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
    host.addEventListener("click", (event) => {
      const link = event.target.closest("button[data-row]");
      if (link) this.onFind(Number(link.dataset.row));
    });
  }

  open(row) {
    if (!this.host.contains(document.activeElement)) this.#opener = document.activeElement;
    this.row = row;
    this.printed = null;
    this.host.querySelector(".output").hidden = true;
    setText(this.host.querySelector(".output pre"), "");
    this.host.hidden = false;
    this.draw();
    this.host.querySelector("h2").focus();
    this.#follow();
  }

  close() {
    if (this.host.hidden) return;
    this.host.hidden = true;
    clearTimeout(this.#timer);
    this.row = null;
    this.onClose();
    this.#opener?.focus?.();
  }

  // Takes up a batch of events when they concern the task that is shown.
  update(changes) {
    if (this.row === null) return;
    if (!this.fold.get("task", this.row)) this.close();
    else if (changes.ids.task?.has(this.row) || changes.has("attempt", "dependency", "phase", "approval")) this.draw();
  }

  // The clock goes on.
  tick() {
    const elapsed = this.row !== null && this.host.querySelector('[data-field="elapsed"]');
    if (elapsed) setText(elapsed, between(this.fold.get("task", this.row)?.started_at, null, this.now()));
  }

  draw() {
    const task = this.fold.get("task", this.row);
    setText(this.host.querySelector("h2"), task.name || task.task_id);
    this.host.querySelector(".state").replaceChildren(chip(taskLook(task)), task.reason ? element("span", { class: "note" }, task.reason) : "");
    setText(this.host.querySelector(".description"), task.description);
    drawProgressOf(this.host.querySelector(".working"), progressOf(this.fold, task));
    this.host.querySelector(".fields").replaceChildren(...this.#fields(task));
    this.#block(".error", task.error);
    this.#block(".answer", task.result === null ? "" : shorten(json(task.result), RESULT_SHOWN));
    this.host.querySelector(".dependencies ul").replaceChildren(...this.#dependencies(task));
    this.host.querySelector(".attempts tbody").replaceChildren(...this.#attempts().map((one) => this.#attempt(one)));
    this.host.querySelector(".attempts").hidden = !this.#attempts().length;
  }

  #fields(task) {
    const fields = {
      task: task.task_id,
      device: this.deviceName(task),
      command: commandOf(task),
      agent: this.#agentLink(),
      priority: PRIORITIES[task.priority]?.toLowerCase(),
      attempt: task.attempt ? `${attemptsMade(task)} of ${task.max_attempts}${earlier(task)}` : "",
      timeout: task.timeout ? `${task.timeout} s` : "",
      deadline: task.deadline ? `${task.deadline} s` : "",
      started: task.started_at ? clock(task.started_at) : "",
      [task.ended_at ? "took" : "elapsed"]: between(task.started_at, task.ended_at, this.now()),
      "tried again": task.retry_at && task.state === "PENDING" ? `at ${clock(task.retry_at)}` : "",
      "when lost": task.on_lost === "retry" ? "" : task.on_lost,
      gate: task.confirm ? "needs an approval" : "",
      "in the place of": task.replaces,
      labels: (task.labels ?? []).join(", "),
      tips: (task.tips ?? []).join("; "),
    };
    return Object.entries(fields)
      .filter(([, value]) => value)
      .flatMap(([key, value]) => [element("dt", {}, key), element("dd", { "data-field": key }, value instanceof Node ? value : String(value))]);
  }

  #agentLink() {
    const agent = latestAttempt(this.fold, this.row)?.agent_id;
    return agent ? element("a", { href: `/agents/${agent}/` }, "what it does") : null;
  }

  #block(selector, text) {
    const block = this.host.querySelector(selector);
    block.hidden = !text;
    setText(block.querySelector("pre"), text || "");
  }

  #dependencies(task) {
    const rows = [...this.fold.table("dependency").values()];
    const into = rows.filter((one) => one.downstream_id === task.id).map((one) => this.#dependency(one, one.upstream_id, "after"));
    const out = rows.filter((one) => one.upstream_id === task.id).map((one) => this.#dependency(one, one.downstream_id, "before"));
    this.host.querySelector(".dependencies").hidden = !into.length && !out.length;
    return [...into, ...out];
  }

  #dependency(one, other, word) {
    const [up, down, task] = [one.upstream_id, one.downstream_id, other].map((id) => this.fold.get("task", id));
    if (!up || !down) return element("li", {});
    const state = dependencyState(one, up, down);
    const said = { held: "✓ holds", never: "✕ can never hold", open: "open" }[state];
    const what = one.type === "CONDITIONAL" ? one.condition : one.type.toLowerCase().replaceAll("_", " ");
    return element(
      "li",
      { "data-state": state },
      `${word} `,
      element("button", { type: "button", class: "link", "data-row": other }, task.name || task.task_id),
      element("span", { class: "note" }, ` ${what} · ${said}`),
    );
  }

  #attempts() {
    return [...this.fold.table("attempt").values()].filter((one) => one.task_id === this.row).sort((a, b) => b.id - a.id);
  }

  #attempt(one) {
    const look = lookOf("outcome", one.outcome || "running");
    const cells = [String(one.number), chip(look), one.exit_code ?? "", clock(one.started_at), between(one.started_at, one.ended_at, this.now())];
    return element("tr", { title: one.error || null }, ...cells.map((cell) => element("td", {}, typeof cell === "number" ? String(cell) : cell)));
  }

  // Reads what the last attempt prints, until it is over.
  async #follow() {
    clearTimeout(this.#timer);
    const row = this.row;
    const attempt = this.#attempts()[0];
    try {
      if (attempt) this.#print(await this.#read(row, attempt), row);
    } catch (error) {
      this.#print({ ...this.printed, text: `The output cannot be read: ${error.message}` }, row);
    }
    if (this.row !== row) return;
    const over = attempt?.ended_at && this.fold.get("task", row)?.ended_at;
    if (!over) this.#timer = setTimeout(() => this.#follow(), OUTPUT_MS);
  }

  async #read(row, attempt) {
    const { printed } = this;
    if (printed?.attempt !== attempt.id) return (await taskDetail(row)).output;
    const end = printed.offset + printed.text.length;
    const { text } = await output(row, attempt.number, end);
    const whole = printed.text + text;
    return { attempt: attempt.id, offset: end + text.length - Math.min(whole.length, OUTPUT_TAIL), text: whole.slice(-OUTPUT_TAIL) };
  }

  #print(printed, row) {
    if (this.row !== row) return;
    this.printed = printed;
    const block = this.host.querySelector(".output");
    const pre = block.querySelector("pre");
    const atEnd = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4;
    block.hidden = !printed?.text;
    setText(pre, printed?.text ?? "");
    if (atEnd) pre.scrollTop = pre.scrollHeight;
  }
}

function earlier({ attempts_before: count }) {
  return count ? `, and ${count} earlier` : "";
}

function commandOf(task) {
  const phases = task.phases ?? [];
  const steps = phases.reduce((count, phase) => count + (phase.steps?.length ?? 0), 0);
  if (phases.length) return `${plural(steps, "step")}${phases.length > 1 ? ` in ${plural(phases.length, "phase")}` : ""}`;
  return task.tool ? callLine(task.tool, task.arguments) : "in words alone; it needs a model or a command";
}
