// A view of the inspector that is about one row: opened, closed and drawn anew alike, whatever it shows.

export class RowView {
  // `concerned`: tables of which a change draws it anew.
  constructor(host, { store, concerned }) {
    Object.assign(this, { host, node: host, store, concerned, row: null });
    host.addEventListener("keydown", (event) => event.key === "Escape" && store.select(null));
  }

  // Shows the row of that id; false where `find(id)` finds none to show.
  open(id) {
    if (!this.find(id)) return false;
    this.row = id;
    this.host.hidden = false;
    this.draw();
    this.host.querySelector("h2").focus();
    return true;
  }

  close() {
    this.row = null;
    this.host.hidden = true;
  }

  update(changes) {
    if (this.row !== null && changes.has(...this.concerned)) this.draw();
  }

  named() {
    if (this.row !== null) this.draw();
  }
}
