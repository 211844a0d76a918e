// A change set that is not made yet: operations as the editor takes them, with undo and redo. Pure.
//
// An operation is {op, parameters}. What is changed twice becomes one operation, and what is added and removed again none.

export class Draft {
  #past = [];
  #future = [];

  constructor() {
    this.operations = [];
    this.basedOn = null; // version of the constellation that its author has seen
  }

  get isEmpty() {
    return this.operations.length === 0;
  }

  get canUndo() {
    return this.#past.length > 0;
  }

  get canRedo() {
    return this.#future.length > 0;
  }

  // Takes up one more operation; `version` is the constellation's now, and counts where this is the first.
  add(operation, version) {
    this.addAll([operation], version);
  }

  // Takes up several, which are undone as one.
  addAll(operations, version) {
    this.basedOn ??= version;
    this.#become(operations.reduce(joined, this.operations));
  }

  // Takes up an operation in the place of one that is there; where it is not, as one more.
  replace(old, operation, version) {
    if (this.operations.includes(old)) this.#become(this.operations.map((one) => (one === old ? operation : one)));
    else this.add(operation, version);
  }

  // Leaves out the operation at `place`.
  drop(place) {
    this.#become(this.operations.filter((_, i) => i !== place));
  }

  undo() {
    this.#future.push(this.operations);
    this.operations = this.#past.pop();
  }

  redo() {
    this.#past.push(this.operations);
    this.operations = this.#future.pop();
  }

  // `operations` are made, as `version`: what was taken up since they were sent stays, and begins anew.
  made(operations, version) {
    const rest = this.operations.filter((one) => !operations.includes(one));
    this.clear();
    this.operations = rest;
    this.basedOn = rest.length ? version : null;
  }

  clear() {
    this.#past = [];
    this.#future = [];
    this.operations = [];
    this.basedOn = null;
  }

  #become(operations) {
    this.#past.push(this.operations);
    this.#future = [];
    this.operations = operations;
  }
}

// `operations` with one more.
export function joined(operations, { op, parameters }) {
  const { task_id: task } = parameters;
  if (op === "update_task") return withChange(operations, parameters);
  if (["add_dependency", "update_dependency"].includes(op)) return withTie(operations, { op, parameters });
  if (op === "remove_task") return withoutTask(operations, task);
  if (op === "remove_dependency") {
    const rest = operations.filter((one) => !["add_dependency", "update_dependency"].includes(one.op) || !sameEnds(one.parameters, parameters));
    if (operations.some((one) => one.op === "add_dependency" && sameEnds(one.parameters, parameters))) return rest;
    return [...rest, { op, parameters }];
  }
  return [...operations, { op, parameters }];
}

function withChange(operations, parameters) {
  const place = operations.findIndex((one) => ["add_task", "update_task"].includes(one.op) && one.parameters.task_id === parameters.task_id);
  if (place < 0) return [...operations, { op: "update_task", parameters }];
  return operations.map((one, i) => (i === place ? { op: one.op, parameters: { ...one.parameters, ...parameters } } : one));
}

// What is said again of the same dependency counts; one that is only drawn again stays as it was.
function withTie(operations, { op, parameters }) {
  const place = operations.findIndex((one) => ["add_dependency", "update_dependency"].includes(one.op) && sameEnds(one.parameters, parameters));
  if (place < 0) return [...operations, { op, parameters }];
  if (Object.keys(parameters).every((key) => parameters[key] === operations[place].parameters[key])) return operations;
  return operations.map((one, i) => (i === place ? { op: one.op, parameters: { ...one.parameters, ...parameters } } : one));
}

function withoutTask(operations, task) {
  const rest = operations.filter(({ parameters }) => ![parameters.task_id, parameters.from, parameters.to].includes(task));
  const wasNew = operations.some((one) => one.op === "add_task" && one.parameters.task_id === task);
  return wasNew ? rest : [...rest, { op: "remove_task", parameters: { task_id: task } }];
}

function sameEnds(one, other) {
  return one.from === other.from && one.to === other.to;
}

// An operation in words.
export function operationText({ op, parameters }) {
  const { task_id: task, from, to, after, condition, type, ...others } = parameters;
  const ties = [type?.toLowerCase().replaceAll("_", " "), condition && `where ${condition}`].filter(Boolean).join(", ");
  const keys = Object.keys(others).join(", ");
  if (op === "add_task") return `add ${task}${after?.length ? ` after ${after.join(", ")}` : ""}`;
  if (op === "update_task") return `change ${task} (${[...(after ? ["after"] : []), keys].filter(Boolean).join(", ")})`;
  if (op === "remove_task") return `remove ${task}`;
  if (op === "add_dependency") return `${to} waits for ${from}${ties ? ` (${ties})` : ""}`;
  if (op === "update_dependency") return `change how ${to} waits for ${from} (${ties || keys || "nothing"})`;
  if (op === "remove_dependency") return `${to} no longer waits for ${from}`;
  return `${op.replaceAll("_", " ")} ${task ?? `${from} to ${to}`}`;
}
