// The draft of a session's page: what it would do (asked of the server as it grows), what others changed meanwhile, and how it ends.

import * as api from "../../api.js";
import { editId } from "../store.js";
import { Draft } from "./draft.js";

const PREVIEW_MS = 150; // after the last change before the server is asked

export class Editing {
  #hearers = [];
  #timer = 0;
  #asked = 0;

  constructor({ store, outbox }) {
    Object.assign(this, { store, outbox, draft: new Draft(), constellation: null });
    this.#forget();
  }

  // `hear()` is called whenever something of this is different.
  listen(hear) {
    this.#hearers.push(hear);
  }

  get isAllowed() {
    return this.store.config.may_operate && this.store.isLive && this.store.constellation !== null;
  }

  get version() {
    return this.store.present.get("constellation", this.constellation)?.version;
  }

  // What would come with one more operation, or one in the place of `old`, without taking it up; raises `Refused`. Resolves to the preview.
  async consider(operation, old = null) {
    const trial = new Draft();
    trial.operations = this.draft.operations;
    trial.replace(old, operation, null);
    this.#begin();
    return api.previewEdit(this.constellation, trial.operations, this.draft.basedOn ?? this.version);
  }

  add(...operations) {
    this.#begin();
    this.outcome = "";
    this.draft.addAll(operations, this.version);
    this.#changed();
  }

  replace(old, operation) {
    this.#begin();
    this.outcome = "";
    this.draft.replace(old, operation, this.version);
    this.#changed();
  }

  drop(place) {
    this.draft.drop(place);
    this.#changed();
  }

  undo() {
    this.draft.undo();
    this.#changed();
  }

  redo() {
    this.draft.redo();
    this.#changed();
  }

  discard() {
    this.draft.clear();
    this.#forget();
    this.#changed();
  }

  // The draft is tried anew on what others have made of the graph: the reader has seen that now.
  rebase() {
    this.draft.basedOn = this.version;
    this.#changed();
  }

  // Sends it as one edit. A refusal stays beside the draft, which can be mended.
  async apply(reason) {
    const { constellation, draft } = this;
    const operations = draft.operations;
    this.isSending = true;
    this.#tell();
    await this.outbox.send(
      "The edit",
      async (id) => {
        try {
          this.#applied(operations, await api.makeEdit(constellation, { operations, based_on: draft.basedOn, reason, edit_id: editId(id) }));
        } catch (error) {
          if (error instanceof api.Refused) this.#refused(error);
          throw error;
        }
      },
      () => JSON.stringify([draft.operations, draft.basedOn]),
    );
    this.isSending = false;
    this.#tell();
  }

  #applied(operations, { changed, proposal, version, between }) {
    this.draft.made(operations, version);
    this.#forget();
    const others = between.filter((one) => one.version < version);
    const rebased = others.length ? `, on top of what ${names(others)} changed meanwhile` : "";
    if (proposal) this.outcome = "It would let something be done unasked, so it waits for somebody who may approve that.";
    else this.outcome = changed ? `Version ${version} is made${rebased}.` : "There was nothing to change.";
    this.#changed();
  }

  #refused(error) {
    this.refusal = error;
    this.preview = null;
    this.between = error.between;
  }

  told(events) {
    if (this.draft.isEmpty) return;
    const edits = events.flatMap((event) => event.data.add?.edit ?? []);
    if (edits.some((edit) => edit.constellation_id === this.constellation)) this.#changed();
  }

  update(changes) {
    // A task that has begun cannot be changed any more: the preview says which.
    if (!this.draft.isEmpty && changes.has("task")) this.#askLater();
  }

  show() {
    this.#tell();
  }

  truthChanged() {
    this.#tell();
  }

  // The draft belongs to the constellation that was on view when it began.
  #begin() {
    if (this.draft.isEmpty) this.constellation = this.store.constellation;
  }

  #forget() {
    Object.assign(this, { preview: null, refusal: null, between: [], isSending: false, outcome: "" });
  }

  #changed() {
    if (this.draft.isEmpty) {
      const { outcome } = this;
      this.draft.basedOn = null;
      this.#forget();
      this.outcome = outcome;
      this.#asked += 1;
    } else {
      this.draft.basedOn ??= this.version; // what was undone wholly and is done again begins anew
      this.#askLater();
    }
    this.#tell();
  }

  #askLater() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), PREVIEW_MS);
  }

  async #ask() {
    if (this.draft.isEmpty || this.isSending) return;
    const number = (this.#asked += 1);
    const { constellation, draft } = this;
    try {
      const preview = await api.previewEdit(constellation, draft.operations, draft.basedOn);
      if (number !== this.#asked) return;
      Object.assign(this, { preview, refusal: null, between: preview.between });
    } catch (error) {
      if (number !== this.#asked) return;
      if (error instanceof api.Refused) this.#refused(error);
      else Object.assign(this, { preview: null, refusal: new api.Refused({ title: "The server does not answer; the draft stays here." }) });
    }
    this.#tell();
  }

  #tell() {
    for (const hear of this.#hearers) hear();
  }
}

export function names(edits) {
  return [...new Set(edits.map((one) => one.author_name))].join(", ");
}
