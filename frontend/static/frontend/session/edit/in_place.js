// Editing where things are: the draft with its tray and form, the ways into it from graph and inspector, told of what happens.

import { plural } from "../../format.js";
import { isChangeable } from "../../states.js";
import { askBefore } from "../asking.js";
import { Connect } from "./connect.js";
import { DependencyForm } from "./dependency_form.js";
import { DraftOnGraph } from "./draft_on_graph.js";
import { Editing } from "./editing.js";
import { Others } from "./others.js";
import { TaskForm } from "./form.js";
import { Tray } from "./tray.js";

export class InPlace {
  // `tell(text)` shows a message above the page.
  constructor({ store, outbox, graph, tell }) {
    Object.assign(this, { store, tell });
    this.editing = new Editing({ store, outbox });
    this.form = new TaskForm(document.querySelector("#task-form"), { editing: this.editing, store });
    this.dependencyForm = new DependencyForm(document.querySelector("#dependency-form"), { editing: this.editing, store });
    const openForm = (operation) => this.#openAgain(operation);
    this.tray = new Tray(document.querySelector("#tray"), { editing: this.editing, openForm });
    this.drawn = new DraftOnGraph(graph, { editing: this.editing, store, openForm });
    this.others = new Others(document.querySelector("#others"), { store, onMarks: (words) => this.drawn.mark(words) });
    const button = document.querySelector("#connect");
    if (button) this.#offerTools(button, graph);
  }

  #offerTools(button, graph) {
    this.connecting = new Connect(graph, button, { editing: this.editing, onConnect: (from, to) => this.#drawnBetween(from, to) });
    const adding = document.querySelector("#add-task");
    adding.addEventListener("click", () => this.add());
    const offer = () => {
      adding.hidden = !this.editing.isAllowed;
    };
    this.editing.listen(offer);
    offer();
  }

  // What was drawn is in the draft at once; its form is there for who has more to say of it. A box of parallel tasks asks first.
  // Only completed ones are in such a box: others can wait for them, and they for nothing.
  async #drawnBetween(ups, [down, ...others]) {
    this.tell(others.length ? `The ${plural(others.length + 1, "task")} of that box have completed, so they wait for nothing any more.` : "");
    if (others.length) return;
    const [up] = ups;
    if (ups.length > 1 && !(await this.#mayConnectAll(ups, down))) return;
    this.editing.add(...ups.map((one) => tieOf(one, down)));
    if (ups.length === 1) await this.#openTie({ from: up.task_id, to: down.task_id });
  }

  #mayConnectAll(ups, down) {
    const text = `The box stands for ${ups[0].task_id} … ${ups.at(-1).task_id}. Each of them becomes a dependency of the draft. To choose some of them, open the box first.`;
    return askBefore({ title: `Let ${down.task_id} wait for all ${plural(ups.length, "task")}?`, text, verb: `Wait for all ${ups.length.toLocaleString("en")}` });
  }

  // The form that an operation of the draft came from, with what it says.
  #openAgain(operation) {
    const { parameters } = operation;
    if (operation.op.endsWith("_task")) return this.#openTask({ operation });
    return this.#openTie({ from: parameters.from, to: parameters.to });
  }

  #openTask(what) {
    this.dependencyForm.close();
    return this.form.open(what);
  }

  // `ends`: {from, to} by ids of tasks, or one of them.
  #openTie(ends) {
    this.form.close();
    const isIt = ({ upstream_id: up, downstream_id: down }) => this.#idOf(up) === ends.from && this.#idOf(down) === ends.to;
    const row = this.store.rowsOf("dependency").find(isIt) ?? null;
    const drafted = this.editing.draft.operations.find(({ op, parameters }) => /^(add|update)_dependency$/.test(op) && parameters.from === ends.from && parameters.to === ends.to);
    return this.dependencyForm.open({ ends, row, given: drafted?.parameters ?? {} });
  }

  #idOf(row) {
    return this.store.fold.get("task", row)?.task_id;
  }

  // Rows of tasks: how the second one waits for the first.
  changeTie(from, to) {
    return this.#openTie({ from: from.task_id, to: to.task_id });
  }

  // A new task, which waits for `task` where one is given.
  add(task = null) {
    return this.#openTask(task ? { operation: { op: "add_task", parameters: { after: [task.task_id] } } } : {});
  }

  // Rows of tasks: the second one shall wait for the first.
  connect(from, to) {
    this.editing.add(tieOf(from, to));
  }

  disconnect(from, to) {
    this.editing.add({ op: "remove_dependency", parameters: { from: from.task_id, to: to.task_id } });
  }

  change(task) {
    return this.#openTask({ task });
  }

  remove(task) {
    this.editing.add({ op: "remove_task", parameters: { task_id: task.task_id } });
  }

  // What a menu offers of editing for a row of a task: [{name, act}].
  choicesOf(task) {
    if (!this.editing.isAllowed) return [];
    if (task.draft === "added") return [{ name: "Leave it out of the draft", act: () => this.remove(task) }];
    const own = [
      { name: "Change…", act: () => this.change(task) },
      { name: "Remove", act: () => this.remove(task) },
      { name: "Let it wait for another…", act: () => this.#openTie({ to: task.task_id }) },
    ];
    const others = [
      { name: "Let another wait for it…", act: () => this.#openTie({ from: task.task_id }) },
      { name: "Add a task after it…", act: () => this.add(task) },
    ];
    return isChangeable(task) ? [...own, ...others] : others;
  }

  // The fold on view with the draft laid over it (drafted.js).
  get fold() {
    return this.drawn.fold;
  }

  // Opens the form of a task that the draft adds; false where the row is that of another one.
  openDrafted(row) {
    const operation = this.fold.adding(row);
    if (operation) this.#openAgain(operation);
    return Boolean(operation);
  }

  told(events) {
    this.editing.told(events);
    this.others.told(events);
  }

  update(changes) {
    this.editing.update(changes);
    this.form.update(changes);
    if (changes.has("edit")) this.drawn.drawEarlier();
  }

  tick() {
    this.others.tick();
  }

  show() {
    this.drawn.lookAgain();
    this.others.clear();
    this.editing.show();
  }

  named() {
    this.drawn.lookAgain();
  }

  truthChanged() {
    this.editing.truthChanged();
    this.others.draw();
    if (this.editing.isAllowed) return;
    this.form.close();
    this.dependencyForm.close();
  }
}

function tieOf(from, to) {
  return { op: "add_dependency", parameters: { from: from.task_id, to: to.task_id } };
}
