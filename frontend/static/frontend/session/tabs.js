// The views of one session on one selection, each behind a tab. Which one is open stands in the address.
//
// A view has `id`, `title` and `panel` (its element), any of what the store tells (store.js), and `opened()` and `closed()`.
// Only the open one hears what the store tells; when it is opened it hears `opened()`, and takes up what it missed.

export class Tabs {
  // `home`: id of the view that opens where the address names none.
  constructor(host, { store, views, home }) {
    Object.assign(this, { host, store, views, open: null, home: views.find((view) => view.id === home) });
    this.host.setAttribute("role", "tablist");
    this.buttons = new Map(views.map((view) => [view.id, this.#button(view)]));
    this.host.append(...this.buttons.values());
    this.host.addEventListener("keydown", (event) => this.#key(event));
  }

  #button(view) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", id: `tab-${view.id}`, textContent: view.title });
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", view.panel.id);
    button.addEventListener("click", () => this.openView(view.id));
    view.panel.setAttribute("role", "tabpanel");
    view.panel.setAttribute("aria-labelledby", button.id);
    return button;
  }

  // Opens the view of that id, or the one at home.
  openView(id) {
    const next = this.views.find((view) => view.id === id) ?? this.home;
    if (next === this.open) return;
    const before = this.open;
    this.open = next;
    for (const view of this.views) {
      const isOpen = view === next;
      view.panel.hidden = !isOpen;
      this.buttons.get(view.id).setAttribute("aria-selected", String(isOpen));
      this.buttons.get(view.id).tabIndex = isOpen ? 0 : -1;
    }
    document.body.dataset.tab = next.id;
    this.store.address.set({ tab: next === this.home ? null : next.id });
    before?.closed?.();
    next.opened?.();
  }

  update(changes) {
    this.open?.update?.(changes);
  }

  tick() {
    this.open?.tick?.();
  }

  show(constellation) {
    this.open?.show?.(constellation);
  }

  select(selection) {
    this.open?.select?.(selection);
  }

  truthChanged() {
    this.open?.truthChanged?.();
  }

  narrowed() {
    this.open?.narrowed?.();
  }

  frame(time) {
    this.open?.frame?.(time);
  }

  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = this.views[(this.views.indexOf(this.open) + step + this.views.length) % this.views.length];
    this.openView(next.id);
    this.buttons.get(next.id).focus();
    event.preventDefault();
  }
}
