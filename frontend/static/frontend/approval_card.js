// One approval or question as a card: what, where, exactly which action, what was seen, how long, and the buttons.

import { ActionEditor } from "./action_editor.js";
import { actionView } from "./actions.js";
import { visible } from "./command_line.js";
import { chip, element, setText } from "./dom.js";
import { duration } from "./format.js";
import { observedView } from "./observed.js";
import { proposalView } from "./proposal_view.js";
import { lookOf } from "./states.js";

const REASON_LENGTH = 500; // characters, as the server takes them
const ANSWER_LENGTH = 10_000;
const ADVICE = {
  lost: "Its worker is gone and nobody knows how far it came. Approve to run it again, reject to give it up.",
  tool: "A refusal goes back to the agent, which then goes on without this call.",
  task: "A refusal fails the task.",
  edit: "Nothing is changed before you approve. If it no longer fits the graph by then, approving says so and changes nothing.",
};

export class ApprovalCard {
  #decided = false;
  #sending = false;

  // `row` as REST has it, with `place`: {session, task, agent}, each {text, href}, and `device`; `decide(row, body)` resolves
  // when the decision was taken, and fails with what to tell; `mayDecide`: there are buttons.
  constructor(row, { place, decide, mayDecide }) {
    Object.assign(this, { row, decide });
    this.alarm = element("p", { class: "alarm", role: "alert", hidden: true });
    this.waited = element("span", { class: "waited" });
    this.left = element("span", { class: "left" });
    this.heading = element("h3", { id: `approval-${row.id}`, tabindex: -1 }, visible(row.title));
    this.form = mayDecide ? this.#form() : null;
    this.node = element("article", { class: "approval card", "data-approval": row.id, "data-kind": row.kind, "aria-labelledby": `approval-${row.id}` });
    this.node.append(...[this.#head(), where(place), ...this.#what(), this.form, this.alarm].filter(Boolean));
  }

  // `now` in milliseconds.
  tick(now) {
    setText(this.waited, `waits for ${duration(now - Date.parse(this.row.asked_at))}`);
    if (!this.row.expires_at) return;
    const left = Date.parse(this.row.expires_at) - now;
    setText(this.left, left > 0 ? `expires in ${duration(left)}` : "expires now");
    this.left.toggleAttribute("data-soon", left < 60_000);
  }

  // Says how it ended, in the place of the buttons.
  settle(sentence) {
    if (this.#decided) return;
    this.#decided = true;
    this.form?.remove();
    this.alarm.hidden = true;
    this.node.toggleAttribute("data-settled", true);
    this.node.append(element("p", { class: "settled", role: "status" }, sentence));
  }

  get settled() {
    return this.#decided;
  }

  #head() {
    const { kind } = this.row;
    const times = element("p", { class: "note when" }, this.waited, this.left);
    return element("header", {}, chip(lookOf("ask", kind)), times, this.heading);
  }

  #what() {
    const { action, observed, kind } = this.row;
    const isEdit = kind === "edit";
    const shown = isEdit ? proposalView(action, observed) : actionView(action ?? {});
    const advice = ADVICE[kind] ? element("p", { class: "note" }, ADVICE[kind]) : null;
    return [shown.length ? element("div", { class: "action" }, ...shown) : null, isEdit ? null : observedView(observed), advice].filter(Boolean);
  }

  #form() {
    const form = element("form", { class: "decide", novalidate: true });
    if (this.row.kind === "question" || this.row.kind === "elicitation") this.#asQuestion(form);
    else this.#asApproval(form);
    form.addEventListener("submit", (event) => this.#submitted(event));
    return form;
  }

  #asApproval(form) {
    const { action } = this.row;
    const reason = element("input", { name: "reason", maxlength: REASON_LENGTH, placeholder: "optional", autocomplete: "off" });
    reason.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault()); // only a button decides
    const buttons = [button("approve", "Approve", "primary")];
    if (action?.tool && action.arguments && action.tool !== "steps") {
      this.editor = new ActionEditor(action);
      const keep = button("keep", "Leave it as it was", "quiet");
      keep.hidden = true;
      buttons.push(button("change", "Approve with changes…", ""), button("reject", "Reject", "danger"), keep);
      form.append(this.editor.node);
    } else buttons.push(button("reject", "Reject", "danger"));
    form.append(element("label", { class: "reason" }, "Reason", reason), element("div", { class: "buttons" }, ...buttons));
  }

  #asQuestion(form) {
    const { options } = this.row;
    if (options?.length) {
      const choices = options.map((option) => element("button", { type: "submit", value: "answer", "data-answer": JSON.stringify(option) }, visible(String(option))));
      form.append(element("div", { class: "buttons options", role: "group", "aria-label": "Answers" }, ...choices, button("reject", "No answer", "danger quiet")));
      return;
    }
    this.answer = element("textarea", { name: "answer", rows: 2, maxlength: ANSWER_LENGTH });
    if (this.row.kind === "elicitation") this.answer.value = emptyForm(this.row.action.arguments.schema);
    form.append(element("label", { class: "reason" }, "Answer", this.answer));
    form.append(element("div", { class: "buttons" }, button("answer", "Answer", "primary"), button("reject", "No answer", "danger quiet")));
  }

  #submitted(event) {
    event.preventDefault();
    const pressed = event.submitter;
    if (this.#sending || !pressed) return;
    if (pressed.value === "change") return this.#change(pressed);
    if (pressed.value === "keep") return this.#edit(false);
    const body = this.#body(pressed);
    if (body) this.#send(body);
  }

  // First the box, then, with the same button, what is in it.
  #change(pressed) {
    if (this.editor.node.hidden) return this.#edit(true);
    const changed = this.editor.read();
    if (changed === null) return;
    this.#send({ ...this.#body({ value: "approve" }), ...(changed === undefined ? {} : { arguments: changed }) });
  }

  // While there are changes, the only way to approve is with them.
  #edit(on) {
    const [approve, change, keep] = ["approve", "change", "keep"].map((value) => this.form.querySelector(`button[value=${value}]`));
    this.editor.node.hidden = !on;
    approve.hidden = on;
    keep.hidden = !on;
    change.classList.toggle("primary", on);
    setText(change, on ? "Approve these changes" : "Approve with changes…");
    (on ? this.editor.box : change).focus();
  }

  #body({ value, dataset }) {
    const reason = this.form.elements.reason?.value.trim();
    const { digest } = this.row;
    const shared = { ...(digest ? { digest } : {}), ...(reason ? { reason } : {}) };
    if (value !== "answer") return { decision: value, ...shared };
    const written = dataset.answer ?? this.answer.value.trim();
    if (!written) return this.#askAgain("Write an answer first.");
    if (dataset.answer === undefined && this.row.kind !== "elicitation") return { decision: "approve", answer: written, ...shared };
    try {
      return { decision: "approve", answer: JSON.parse(written), ...shared };
    } catch (error) {
      return this.#askAgain(`The answer is a JSON object: ${error.message}`);
    }
  }

  #askAgain(why) {
    this.#tell(why);
    this.answer.focus();
    return null;
  }

  async #send(body) {
    this.#tell("");
    this.#busy(true);
    try {
      await this.decide(this.row, body);
    } catch (error) {
      this.#tell(error.message);
    } finally {
      this.#busy(false);
    }
  }

  // Nothing is sent twice; buttons stay as they are, because one that is disabled loses the focus.
  #busy(sending) {
    this.#sending = sending;
    this.form.toggleAttribute("data-busy", sending);
  }

  #tell(text) {
    setText(this.alarm, text);
    this.alarm.hidden = !text;
  }
}

function button(value, text, look) {
  return element("button", { type: "submit", value, class: look || null }, text);
}

function where({ session, task, agent, device }) {
  const parts = [session, task, agent].filter(Boolean).map(({ text, href }) => element("a", { href }, text));
  if (device) parts.push(element("span", {}, `on ${device}`));
  return element("p", { class: "where" }, ...parts);
}

// What a tool server asks for, to be filled in: an object with a value of each kind.
function emptyForm(schema) {
  const usual = { string: "", number: 0, integer: 0, boolean: false, array: [] };
  const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => [name, field.default ?? field.enum?.[0] ?? usual[field.type] ?? ""]);
  return JSON.stringify(Object.fromEntries(fields), null, 2);
}
