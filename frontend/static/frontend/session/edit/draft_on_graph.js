// The draft as it would look, and what others have just changed: laid over the rows that the graph draws.
// A new task opens its form, as the inspector knows nothing of it yet; one that was removed opens the edit that did it.

import { setText } from "../../dom.js";
import { DraftedFold } from "./drafted.js";
import { SHOWN_AT_ONCE, countRemoved } from "./removed.js";

export class DraftOnGraph {
  #drawn = []; // operations that the graph shows
  #words = {};
  #mostGone = SHOWN_AT_ONCE; // tasks that were removed, the latest

  // `graph` is the Graph on view; `openForm(operation)` lets one of the draft be changed.
  constructor(graph, { editing, store, openForm }) {
    Object.assign(this, { graph, editing, store, openForm });
    this.fold = new DraftedFold(graph.fold, store.config.defaults, (author) => store.personOf(author));
    graph.fold = this.fold;
    editing.listen(() => this.#lay());
    this.removed = document.querySelector("#removed");
    this.removed.addEventListener("click", () => this.#showGone());
    this.earlier = document.querySelector("#removed-earlier");
    this.earlier.addEventListener("click", () => this.#showEarlier());
    const open = { capture: true };
    graph.view.addEventListener("click", (event) => this.#opened(event, graph.nodeAt(event)), open);
    graph.view.addEventListener("keydown", (event) => ["Enter", " "].includes(event.key) && this.#opened(event, graph.focused), open);
  }

  // `words` of others' changes by ids of tasks.
  mark(words) {
    this.#words = words;
    this.#lay(true);
  }

  #showGone() {
    this.removed.ariaPressed = String(!this.#isShowingGone);
    this.#mostGone = SHOWN_AT_ONCE;
    this.#drawGone();
  }

  #showEarlier() {
    this.#mostGone += SHOWN_AT_ONCE;
    this.#drawGone();
    if (this.earlier.hidden) this.removed.focus(); // where the keyboard stood is no more
  }

  // Says how many were removed before those that are shown.
  drawEarlier() {
    const left = this.#isShowingGone ? countRemoved(this.store.fold, this.store.constellation) - this.#mostGone : 0;
    this.earlier.hidden = left <= 0;
    setText(this.earlier, `and ${left.toLocaleString("en")} more`);
  }

  // Another constellation is on view, or those who edited have their names.
  lookAgain() {
    if (this.#isShowingGone) this.#drawGone();
  }

  get #isShowingGone() {
    return this.removed.ariaPressed === "true";
  }

  #drawGone() {
    const { constellation } = this.store;
    this.fold.showGone(this.#isShowingGone ? constellation : null, this.#mostGone);
    this.drawEarlier();
    this.graph.refresh(constellation);
  }

  // The graph is drawn anew only where the draft, or whether it is on view at all, is different.
  #lay(isDue = false) {
    const { draft, constellation, isAllowed } = this.editing;
    const operations = isAllowed && constellation === this.store.constellation ? draft.operations : [];
    if (!isDue && (operations === this.#drawn || (!operations.length && !this.#drawn.length))) return;
    this.#drawn = operations;
    this.fold.lay(operations, this.store.constellation, this.store.isLive ? this.#words : {});
    this.graph.refresh(this.store.constellation);
  }

  #opened(event, node) {
    const row = this.graph.scene?.ids[node];
    const operation = row === undefined ? undefined : this.fold.adding(row);
    const edit = row === undefined ? undefined : this.fold.get("task", row)?.edit;
    if (!operation && !edit) return;
    event.stopPropagation();
    event.preventDefault();
    if (operation) this.openForm(operation);
    else this.store.select({ kind: "edit", id: edit });
  }
}
