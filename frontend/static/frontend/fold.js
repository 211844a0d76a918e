// Events into rows: the client's side of the fold. Pure: no DOM, no clock.
//
// `rows` is {table: Map(id, row)}. An event's data carries new values only (`add`, `set`, `del`), so applying it replaces
// and never computes; `defaults` ({table: {field: value}}) fills what a whole row leaves out.

const MAX_REMEMBERED = 1000; // rows that are gone and may still be spoken of

export class Fold {
  #gone = new Map();
  #shared = new Set(); // tables that another fold has too: who writes to one makes it its own first

  constructor(defaults = {}) {
    this.defaults = defaults;
    this.rows = {};
    this.seq = 0;
  }

  table(name) {
    return (this.rows[name] ??= new Map());
  }

  get(name, id) {
    return this.rows[name]?.get(Number(id));
  }

  // Rows of all tables.
  get size() {
    return Object.values(this.rows).reduce((sum, rows) => sum + rows.size, 0);
  }

  // The same rows, which later events of either leave as they are in the other.
  copy() {
    const copied = new Fold(this.defaults);
    Object.assign(copied, { seq: this.seq, rows: { ...this.rows } });
    for (const name of Object.keys(this.rows)) this.#share(name, copied);
    return copied;
  }

  #share(name, other) {
    this.#shared.add(name);
    other.#shared.add(name);
  }

  // A table that is written to.
  #own(name) {
    if (this.#shared.delete(name)) this.rows[name] = new Map(this.rows[name]);
    return this.table(name);
  }

  // A row that is there, or was.
  recall(name, id) {
    return this.get(name, id) ?? this.#gone.get(`${name} ${id}`);
  }

  // Takes note of rows in `events` from before the snapshot that are no longer there.
  remember(events) {
    for (const { data } of events) {
      for (const [name, rows] of Object.entries(data.add ?? {})) for (const row of rows) if (!this.get(name, row.id)) this.#keep(name, row);
    }
  }

  load(snapshot) {
    this.#shared.clear();
    this.rows = {};
    this.seq = snapshot.seq;
    for (const [name, rows] of Object.entries(snapshot.rows)) {
      const table = this.table(name);
      for (const [id, row] of Object.entries(rows)) table.set(Number(id), this.whole(name, row));
    }
  }

  // Whole rows after event `seq`, as they are: {table: Map(id, row)}.
  take(seq, tables) {
    this.#shared.clear();
    this.rows = tables;
    this.seq = seq;
  }

  // The rows at another moment: {seq, tables: {table: Map(id, row)} of new rows, changed: {table: {columns, rows}}, gone: {table: [id]}}.
  // Neither fold changes by that; they share the tables in which they do not differ.
  elsewhere({ seq, tables, changed, gone }) {
    const other = new Fold(this.defaults);
    Object.assign(other, { seq, rows: { ...this.rows } });
    for (const name of new Set([tables, changed, gone].flatMap(Object.keys))) {
      const table = new Map(this.rows[name]);
      for (const id of gone[name] ?? []) table.delete(id);
      const { columns = [], rows = [] } = changed[name] ?? {};
      const at = columns.indexOf("id");
      for (const values of rows) {
        const row = { ...table.get(values[at]) };
        for (let i = 0; i < columns.length; i++) row[columns[i]] = values[i];
        table.set(row.id, row);
      }
      other.rows[name] = withRows(table, tables[name] ?? new Map());
    }
    for (const [name, table] of Object.entries(this.rows)) if (other.rows[name] === table) this.#share(name, other);
    return other;
  }

  // Applies the next event and notes in `changes` what it touched. An event already applied changes nothing.
  apply(event, changes = new Changes()) {
    if (event.seq <= this.seq) return changes;
    if (event.seq !== this.seq + 1) throw new Gap(this.seq, event.seq);
    this.seq = event.seq;
    const { add = {}, set = {}, del = {} } = event.data;
    for (const [name, rows] of Object.entries(add)) this.#add(name, rows, changes);
    for (const [name, rows] of Object.entries(set)) this.#set(name, rows, changes);
    for (const [name, ids] of Object.entries(del)) this.#del(name, ids, changes);
    return changes;
  }

  #keep(name, row) {
    this.#gone.set(`${name} ${row.id}`, this.whole(name, row));
    if (this.#gone.size > MAX_REMEMBERED) this.#gone.delete(this.#gone.keys().next().value);
  }

  whole(name, row) {
    return { ...this.defaults[name], ...row };
  }

  #add(name, rows, changes) {
    const table = this.#own(name);
    for (const row of rows) {
      table.set(row.id, this.whole(name, row));
      changes.note(name, row.id, true);
    }
  }

  #set(name, rows, changes) {
    const table = this.#own(name);
    for (const [key, fields] of Object.entries(rows)) {
      const id = Number(key);
      table.set(id, { ...table.get(id), ...fields });
      changes.note(name, id, false);
    }
  }

  #del(name, ids, changes) {
    const table = this.#own(name);
    for (const id of ids) {
      if (table.has(Number(id))) this.#keep(name, table.get(Number(id)));
      table.delete(Number(id));
      changes.note(name, Number(id), true);
    }
  }
}

// The newest of a table's rows for which `wanted(row)` holds; null where there is none.
export function newest(rows, wanted = () => true) {
  let found = null;
  for (const row of rows.values()) if ((!found || row.id > found.id) && wanted(row)) found = row;
  return found;
}

// What a batch of events touched: ids by table, and the tables that gained or lost rows.
export class Changes {
  // `isJump`: another moment came on view, so that even what no row says may be otherwise.
  constructor(isJump = false) {
    this.ids = {};
    this.structure = new Set();
    this.isJump = isJump;
  }

  note(table, id, structural) {
    (this.ids[table] ??= new Set()).add(id);
    if (structural) this.structure.add(table);
  }

  // Rows that are there now, all of a table.
  noteAll(table, ids) {
    this.ids[table] = new Set(ids);
    this.structure.add(table);
  }

  has(...tables) {
    return this.isJump || tables.some((table) => table in this.ids);
  }

  restructured(...tables) {
    return tables.some((table) => this.structure.has(table));
  }
}

const ASKED_FOR = new Set(["task", "dependency", "agent"]); // tables of which views ask which rows have changed

// What is otherwise where `after` is on view and no longer `before`; rows are the same where they are one object.
// Of other tables than those of ASKED_FOR it tells that they differ, and not in which rows.
export function jumpBetween(before, after) {
  const changes = new Changes(true);
  for (const name of new Set([before, after].flatMap((fold) => Object.keys(fold.rows)))) {
    const [old, now] = [before.table(name), after.table(name)];
    if (old === now) continue;
    if (!ASKED_FOR.has(name)) {
      changes.ids[name] = new Set();
      continue;
    }
    for (const [id, row] of now) if (old.get(id) !== row) changes.note(name, id, !old.has(id));
    for (const id of old.keys()) if (!now.has(id)) changes.note(name, id, true);
  }
  return changes;
}

// A table with new rows, in the order of ids: those of a task that is removed later may be lower than others.
function withRows(table, fresh) {
  let last = 0;
  for (const id of table.keys()) last = id;
  let isInOrder = true;
  for (const [id, row] of fresh) {
    isInOrder &&= id > last;
    last = id;
    table.set(id, row);
  }
  return isInOrder ? table : new Map([...table].sort(([a], [b]) => a - b));
}

export class Gap extends Error {
  constructor(have, got) {
    super(`event ${got} came after ${have}`);
    this.name = "Gap";
  }
}
