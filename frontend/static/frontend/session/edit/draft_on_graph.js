// The draft as it would look, and what others have just changed: laid over the rows that the graph draws.
// A new task opens its form, as the inspector knows nothing of it yet.

import { DraftedFold } from "./drafted.js";

export class DraftOnGraph {
  #drawn = []; // operations that the graph shows
  #words = {};

  // `graph` is the Graph on view; `openForm(operation)` lets one of the draft be changed.
  constructor(graph, { editing, store, openForm }) {
    Object.assign(this, { graph, editing, store, openForm });
    this.fold = new DraftedFold(graph.fold, store.config.defaults);
    graph.fold = this.fold;
    editing.listen(() => this.#lay());
    const button = document.querySelector("#removed");
    button.addEventListener("click", () => this.#showGone(button));
    const open = { capture: true };
    graph.view.addEventListener("click", (event) => this.#opened(event, graph.nodeAt(event)), open);
    graph.view.addEventListener("keydown", (event) => ["Enter", " "].includes(event.key) && this.#opened(event, graph.focused), open);
  }

  // `words` of others' changes by ids of tasks.
  mark(words) {
    this.#words = words;
    this.#lay(true);
  }

  #showGone(button) {
    button.ariaPressed = String(button.ariaPressed !== "true");
    this.fold.withGone = button.ariaPressed === "true";
    this.graph.refresh(this.store.constellation);
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
    if (!operation) return;
    event.stopPropagation();
    event.preventDefault();
    this.openForm(operation);
  }
}
