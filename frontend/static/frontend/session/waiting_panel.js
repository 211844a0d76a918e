// What one session waits for a person with, beside its graph; driven by the fold, without asking the server.

import { ApprovalList } from "../approval_list.js";
import { isForPeople } from "../task_progress.js";

export class WaitingPanel {
  constructor(host, { fold, personOf, refusal, nameOf, now }) {
    Object.assign(this, { host, fold, personOf, nameOf });
    const options = { placeOf: (row) => this.#place(row), fateOf: (row) => this.#fate(row), onChange: (count) => this.#counted(count) };
    const fallback = host.querySelector("h2");
    this.list = new ApprovalList(host.querySelector(".cards"), { ...options, fallback, mayDecide: !refusal, now });
  }

  update(changes) {
    if (!changes.has("approval")) return;
    const waiting = [...this.fold.table("approval").values()].filter(isForPeople);
    this.list.show(waiting.map((row) => ({ ...row, session: row.session_id, agent: row.agent_id })));
  }

  tick() {
    this.list.tick();
  }

  #place({ subject_id: subject, agent: id }) {
    const [task, agent] = [this.fold.get("task", subject), this.fold.get("agent", id)];
    return {
      session: null,
      task: task ? { text: task.name || task.task_id, href: `#task-${subject}` } : null,
      agent: agent ? { text: "agent", href: `/agents/${id}/` } : null,
      device: this.nameOf(agent?.device_id),
    };
  }

  async #fate({ id }) {
    const row = this.fold.recall("approval", id);
    if (!row || row.state === "withdrawn") return "It has been withdrawn.";
    if (row.state === "expired") return "It has expired.";
    const word = ["question", "elicitation"].includes(row.kind) && row.state === "approved" ? "answered" : row.state;
    return `It was ${word} by ${this.personOf(row.decided_by)}.`;
  }

  #counted(count) {
    this.host.hidden = count === 0;
  }
}
