// Editing where things are: the draft with its tray and form, the ways into it from graph and inspector, told of what happens.

import { isChangeable } from "../../states.js";
import { Connect } from "./connect.js";
import { DependencyForm } from "./dependency_form.js";
import { DraftOnGraph } from "./draft_on_graph.js";
import { Editing } from "./editing.js";
import { Others } from "./others.js";
import { TaskForm } from "./form.js";
import { Tray } from "./tray.js";

export class InPlace {
  constructor({ store, outbox, graph }) {
    this.store = store;
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

  // What was drawn is in the draft at once; its form is there for who has more to say of it.
  #drawnBetween(from, to) {
    this.connect(from, to);
    return this.#openTie({ from: from.task_id, to: to.task_id });
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
    this.editing.add({ op: "add_dependency", parameters: { from: from.task_id, to: to.task_id } });
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

  // What the draft does with a task, by its row: "removed", "changed" or "".
  markOf(row) {
    return this.drawn.fold.get("task", row)?.draft ?? "";
  }

  told(events) {
    this.editing.told(events);
    this.others.told(events);
  }

  update(changes) {
    this.editing.update(changes);
    this.form.update(changes);
  }

  tick() {
    this.others.tick();
  }

  show() {
    this.others.clear();
    this.editing.show();
  }

  truthChanged() {
    this.editing.truthChanged();
    this.others.draw();
    if (this.editing.isAllowed) return;
    this.form.close();
    this.dependencyForm.close();
  }
}
