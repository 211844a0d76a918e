// The right side: what is chosen, in full; with nothing chosen, what waits, what was asked, who works, and what happened.
//
// A kind's view has `node`, `open(id)` (false where there is no such row), `close()`, and any of what the store tells.

export class Inspector {
  // `kinds`: {kind of selection: view}; `overview`: what is shown with nothing chosen.
  constructor({ store, kinds, overview }) {
    Object.assign(this, { store, kinds, overview, shown: null });
  }

  select(selection) {
    const view = this.kinds[selection?.kind] ?? null;
    if (this.shown && this.shown !== view) this.shown.close();
    this.shown = view?.open(selection.id) === false ? null : view;
    this.overview.node.hidden = this.shown !== null;
    document.body.dataset.inspected = this.shown ? selection.kind : "";
  }

  update(changes) {
    this.overview.update(changes);
    this.shown?.update?.(changes);
  }

  told(events) {
    this.overview.told(events);
    this.shown?.told?.(events);
  }

  tick() {
    this.overview.tick();
    this.shown?.tick?.();
  }

  frame(time) {
    this.overview.frame(time);
    this.shown?.frame?.(time);
  }

  named() {
    this.overview.named();
    this.shown?.named?.();
  }

  truthChanged() {
    this.overview.truthChanged?.();
    this.shown?.truthChanged?.();
  }
}
