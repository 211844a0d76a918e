// The tab with the graph: its toolbar, search, and the picture (graph/graph.js).

import { FOLD_FROM } from "../graph/folding.js";
import { Graph } from "../graph/graph.js";
import { countRemoved } from "./edit/removed.js";
import { EVERYTHING, fitsPlace, writeFilter } from "./filters.js";
import { Pace } from "./pace.js";
import { drawCounters, drawProgress, tally } from "./panels.js";

export class GraphView {
  id = "graph";
  title = "Graph";
  #found = null; // the task that the last look for one led to
  #pace = new Pace({ isDue: true });
  #saysEmpty = true;

  constructor(panel, { store }) {
    Object.assign(this, { panel, store });
    const select = (taskRow) => store.select({ kind: "task", id: taskRow });
    this.graph = new Graph(this.at("#graph"), { fold: store.fold, deviceName: (task) => store.placeOf(task), onOpen: select, now: () => store.now(), lookOf: (task) => store.standings.taskLook(task) });
    this.graph.setFolding(true);
    this.#listen();
    this.#take(store.filter);
  }

  at(selector) {
    return this.panel.querySelector(selector);
  }

  opened() {
    this.graph.refresh(this.store.constellation);
    this.#take(this.store.filter);
    this.select(this.store.selection);
    this.#pace.isDue = true;
  }

  show(constellation) {
    this.graph.show(constellation);
    this.#pace.isDue = true;
  }

  // The picture shows a change in the same frame; the toolbar gathers changes for a moment.
  update(changes) {
    this.graph.update(changes);
    if (changes.has("task", "constellation", "edit", "approval")) this.#pace.isDue = true;
  }

  select(selection) {
    const task = selection?.kind === "task" ? selection.id : null;
    if (task !== null) this.graph.find(task, false);
    this.graph.select(task);
  }

  frame(time) {
    this.graph.tick(time);
    const isFollowing = String(this.graph.isFollowing);
    if (this.at("#follow").ariaPressed !== isFollowing) this.at("#follow").ariaPressed = isFollowing;
    if (this.#pace.takes(time) || (this.#saysEmpty && this.graph.scene?.total)) this.#drawToolbar();
  }

  #drawToolbar() {
    const counts = tally(this.store);
    drawProgress(this.at("#progress"), counts);
    if (!this.at("#counters").contains(document.activeElement)) drawCounters(this.at("#counters"), counts);
    this.#saysEmpty = counts.total === 0 && !this.graph.scene?.total; // of a draft there is a graph before there is a task
    this.at("#empty").hidden = !this.#saysEmpty;
    this.at("#fold").hidden = counts.total < FOLD_FROM;
    this.at("#removed").hidden = countRemoved(this.store.fold, this.store.constellation) === 0;
  }

  // The next task after the last one found, in the order of the graph, for which `wanted(task)` holds.
  #findNext(wanted) {
    const ids = this.graph.scene?.taskIds ?? [];
    const start = ids.indexOf(this.#found) + 1;
    for (let i = 0; i < ids.length; i++) {
      const id = ids[(start + i) % ids.length];
      if (!wanted(this.graph.fold.get("task", id))) continue;
      this.#found = id;
      this.graph.find(id, false);
      this.graph.select(id);
      return;
    }
  }

  narrowed() {
    if (writeFilter(this.store.filter) !== writeFilter(this.filter)) this.#take(this.store.filter);
  }

  // What another view, or a link, has asked for.
  #take(filter) {
    this.at("#search").value = filter.text;
    this.#draw(filter);
  }

  // Tasks that fit stay, the others stand back.
  #draw(filter) {
    this.filter = filter;
    const isAny = Boolean(writeFilter(filter));
    this.graph.filter(isAny ? this.#wanted : null);
    this.at("#show-all").hidden = !isAny;
  }

  #filter(filter) {
    this.#draw(filter);
    this.store.narrow(filter);
  }

  #wanted = (task) => fitsPlace(this.store, this.filter, task) && `${task.task_id} ${task.name}`.toLowerCase().includes(this.filter.text.trim().toLowerCase());

  #fold(isFolding) {
    this.graph.setFolding(isFolding);
    this.at("#fold").ariaPressed = String(isFolding);
  }

  #listen() {
    this.at("#zoom-in").addEventListener("click", () => this.graph.zoom(1));
    this.at("#zoom-out").addEventListener("click", () => this.graph.zoom(-1));
    this.at("#fit").addEventListener("click", () => this.graph.fit());
    this.at("#counters").addEventListener("click", (event) => {
      const state = event.target.closest("button")?.dataset.find;
      if (!state) return;
      this.at("#search").value = "";
      this.#filter({ ...EVERYTHING, state });
      this.#findNext(this.#wanted);
    });
    this.at("#show-all").addEventListener("click", () => {
      this.at("#search").value = "";
      this.#filter(EVERYTHING);
    });
    this.at("#follow").addEventListener("click", () => this.graph.follow());
    this.at("#fold").addEventListener("click", () => this.#fold(!this.graph.isFolding));
    this.at("#critical").addEventListener("click", (event) => {
      this.graph.markCritical(!this.graph.isCritical);
      event.currentTarget.ariaPressed = String(this.graph.isCritical);
    });
    this.at("#search").addEventListener("input", (event) => this.#filter({ ...this.filter, text: event.target.value }));
    this.at("#search").addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      if (event.target.value.trim()) this.#findNext(this.#wanted);
    });
  }
}
