// What the page of a session shows, in one place: the present and the moment on view, what is chosen, and who hears of changes.
//
// Views read `store.fold`, which is the present or a moment of the past; it stays the same object when the moment changes.
// A view is an object with any of: `update(changes)` rows changed; `select(selection)` something else was chosen;
// `show(constellation id)` another constellation is on view; `told(events)` events of the present came; `tick()` once a second;
// `narrowed()` the filter is another one; `named()` authors have names that had none; `truthChanged()` the connection or the server's word on the session changed.

import * as api from "../api.js";
import { Changes, Fold, jumpBetween, newest } from "../fold.js";
import { readFilter, writeFilter } from "./filters.js";
import { Standings } from "./standings.js";

const NAMES_MS = 200; // authors of one moment are asked for together

export const SELECTABLE = ["task", "agent", "edit", "approval", "device"];

// The fold on view, as modules know a fold.
class ShownFold {
  constructor(store) {
    this.store = store;
  }

  get rows() {
    return this.store.shownFold.rows;
  }

  get seq() {
    return this.store.shownFold.seq;
  }

  table(name) {
    return this.store.shownFold.table(name);
  }

  get(name, id) {
    return this.store.shownFold.get(name, id);
  }

  recall(name, id) {
    return this.store.shownFold.recall(name, id);
  }
}

export class Store {
  #views = [];
  #stoodAt = null;
  #unnamed = new Set(); // authors whose names were asked for
  #namesTimer = 0;

  // `config` is what the page begins with; `address` (address.js) keeps the selection, the tab and the moment.
  constructor(config, address) {
    this.config = config;
    this.address = address;
    this.skew = config.now - Date.now(); // server's clock minus ours
    this.present = new Fold(config.defaults);
    this.fold = new ShownFold(this);
    this.standings = new Standings(this.fold, config);
    this.moment = null; // {seq, at: ISO time, fold, notKept: [what lies outside the fold and is gone]} while the past is on view
    this.selection = null; // {kind, id}
    this.constellation = null; // id of the one on view
    this.chosen = false; // by the reader, so that a newer one does not take its place
    this.devices = new Map(config.devices.map((device) => [device.id, device]));
  }

  add(...views) {
    this.#views.push(...views);
  }

  get shownFold() {
    return this.moment?.fold ?? this.present;
  }

  get isLive() {
    return this.moment === null;
  }

  // Milliseconds: the server's time, that of the moment on view, or the last that is known for sure.
  now() {
    if (this.moment) return Date.parse(this.moment.at);
    return this.#stoodAt ?? Date.now() + this.skew;
  }

  // Clocks stand while nobody knows what is; null lets them go on.
  standStill(at) {
    this.#stoodAt = at;
  }

  // The present, whole: {seq, rows}.
  load(snapshot) {
    this.present.load(snapshot);
    if (this.isLive) this.#changed(everything(this.present));
  }

  // The present, whole: {seq, tables} of the fold.
  take({ seq, tables }) {
    this.present.take(seq, tables);
    if (this.isLive) this.#changed(everything(this.present));
  }

  // The next events of the present.
  apply(events) {
    const changes = new Changes();
    for (const event of events) this.present.apply(event, changes);
    this.tell("told", events);
    if (this.isLive) this.#changed(changes);
  }

  // Shows the session as it was after an event: {at, fold, notKept}.
  showMoment({ at, fold, notKept }) {
    const before = this.shownFold;
    this.moment = { seq: fold.seq, at, fold, notKept };
    this.#swapped(before);
  }

  // The moment on view goes on by the next events.
  advance(events) {
    const changes = new Changes();
    if (!this.moment.isOwn) Object.assign(this.moment, { fold: this.moment.fold.copy(), isOwn: true }); // others may look from it
    for (const event of events) this.moment.fold.apply(event, changes);
    Object.assign(this.moment, { seq: this.moment.fold.seq, at: events.at(-1).at });
    document.body.dataset.moment = this.moment.seq;
    this.#changed(changes);
    this.tell("truthChanged");
  }

  backToLive() {
    if (this.isLive) return;
    const before = this.shownFold;
    this.moment = null;
    this.#swapped(before);
  }

  #swapped(before) {
    this.address.set({ at: this.moment?.seq ?? null });
    document.body.dataset.moment = this.moment?.seq ?? "";
    this.#changed(jumpBetween(before, this.shownFold));
    this.tell("truthChanged");
  }

  #changed(changes) {
    this.standings.take(changes);
    this.#follow(changes);
    this.tell("update", changes);
    document.body.dataset.seq = this.shownFold.seq;
  }

  // Shows the newest constellation, unless the reader has chosen one that is there.
  #follow(changes) {
    if (!changes.has("constellation")) return;
    const last = newest(this.fold.table("constellation"));
    const stays = this.chosen && this.fold.get("constellation", this.constellation);
    if (!stays && this.constellation !== (last?.id ?? null)) this.#showConstellation(last?.id ?? null);
  }

  #showConstellation(id) {
    this.constellation = id;
    this.tell("show", id);
  }

  choose(id) {
    this.chosen = newest(this.fold.table("constellation"))?.id !== id;
    if (id !== this.constellation) this.#showConstellation(id);
  }

  // Which tasks views show (filters.js); it stands in the address.
  get filter() {
    return readFilter(this.address.get("filter"));
  }

  narrow(filter) {
    this.address.set({ filter: writeFilter(filter) });
    this.tell("narrowed");
  }

  followNewest() {
    this.chosen = false;
  }

  // Chooses what the inspector shows: {kind: one of SELECTABLE, id}, or null for nothing.
  select(selection) {
    if (selection?.kind === this.selection?.kind && selection?.id === this.selection?.id) return;
    if (selection?.kind === "task") {
      const task = this.fold.get("task", selection.id);
      if (task) this.choose(task.constellation_id);
    }
    this.selection = selection;
    this.address.select(selection);
    this.tell("select", selection);
  }

  isSelected(kind, id) {
    return this.selection?.kind === kind && this.selection.id === id;
  }

  tell(what, ...values) {
    for (const view of this.#views) view[what]?.(...values);
  }

  deviceById(id) {
    return this.fold.get("device", id) ?? this.devices.get(id);
  }

  deviceName(id) {
    return this.deviceById(id)?.name ?? "";
  }

  // Where a task runs, or shall.
  placeOf(task) {
    return this.deviceName(task.device_id) || task.wanted_device || task.device_type || (task.capabilities ?? []).join(", ");
  }

  // An author by name: "anna", "you", "token ci of anna", or what kind of program it is. `named()` tells when one is there.
  personOf(author) {
    if (author === this.config.me) return "you";
    if (!(author in this.config.people) && author.includes(":")) this.#askName(author);
    return this.config.people[author] ?? author.replace(":", " ");
  }

  #askName(author) {
    if (this.#unnamed.has(author)) return;
    this.#unnamed.add(author);
    this.#namesTimer ||= setTimeout(() => this.#readNames(), NAMES_MS);
  }

  async #readNames() {
    this.#namesTimer = 0;
    const asked = [...this.#unnamed];
    try {
      Object.assign(this.config.people, await api.people(this.config.session));
      this.tell("named");
    } catch {
      for (const author of asked) this.#unnamed.delete(author); // is asked for again when it is shown again
    }
  }

  // Whether the present has a request or an edit that was sent under that id.
  hasCommand(id) {
    const has = (table, key, value) => [...this.present.table(table).values()].some((row) => row[key] === value);
    return has("inbox", "client_id", id) || has("edit", "edit_id", editId(id));
  }

  // Rows of the constellation on view, oldest first.
  rowsOf(table) {
    const rows = [...this.fold.table(table).values()].filter((row) => row.constellation_id === this.constellation);
    return rows.sort((a, b) => a.id - b.id);
  }
}

// What an edit of the page is called whose command has that id.
export function editId(id) {
  return `page-${id}`;
}

function everything(fold) {
  const changes = new Changes();
  for (const [name, rows] of Object.entries(fold.rows)) if (rows.size) changes.noteAll(name, rows.keys());
  return changes;
}
