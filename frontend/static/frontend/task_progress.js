// How far the work on a task has come: its phases, files, tests, and what it waits for. Reads the fold.

import { element, svg } from "./dom.js";
import { plural } from "./format.js";

const FILES_SHOWN = 20;

export function latestAttempt(fold, task) {
  let found = null;
  for (const one of fold.table("attempt").values()) if (one.task_id === task && (!found || one.id > found.id)) found = one;
  return found;
}

// {done, total, now: the phase under way, files: [path], passed, failed, waiting: [approval]}, all of the last attempt.
export function progressOf(fold, task) {
  const attempt = latestAttempt(fold, task.id);
  const phases = [...fold.table("phase").values()].filter((row) => row.agent_id === attempt?.agent_id).sort((a, b) => a.number - b.number);
  const tests = new Map(phases.flatMap((row) => row.tests).map((test) => [test.name, test.passed]));
  const passed = [...tests.values()].filter(Boolean).length;
  return {
    done: phases.filter((row) => row.ended_at).length,
    total: phases.at(-1)?.total ?? task.phases?.length ?? 0,
    now: phases.findLast((row) => !row.ended_at) ?? null,
    files: [...new Set(phases.flatMap((row) => row.files_changed))],
    passed,
    failed: tests.size - passed,
    waiting: [...fold.table("approval").values()].filter((row) => row.subject_id === task.id && isForPeople(row)),
  };
}

// Whether a row waits for a person; a call-back comes from outside.
export function isForPeople(row) {
  return row.state === "waiting" && row.kind !== "callback";
}

// Draws it into `host`, hidden where there is nothing to tell.
export function drawProgressOf(host, found) {
  const open = host.querySelector("details")?.open ?? false;
  const { done, total, now, files, passed, failed, waiting } = found;
  host.hidden = !total && !waiting.length;
  if (host.hidden) return;
  const label = `${done} of ${plural(total, "phase")} done`;
  host.replaceChildren(
    element("h3", {}, "Progress"),
    ...(total ? [element("p", { class: "phases" }, bar(done, total, label), label)] : []),
    ...(now?.description ? [element("p", { class: "note" }, `Now: ${now.description}`)] : []),
    ...(files.length ? [element("details", { open }, element("summary", {}, `${plural(files.length, "file")} changed`), ...listed(files))] : []),
    ...(passed + failed ? [element("p", { "data-tests": failed ? "failed" : "passed" }, `${plural(passed, "test")} passed${failed ? `, ${failed} failed` : ""}`)] : []),
    ...(waiting.length ? [element("h3", {}, "Waits for you"), element("ul", {}, ...waiting.map(link))] : []),
  );
}

function link(row) {
  return element("li", {}, element("a", { href: `#approval-${row.id}` }, row.title));
}

function bar(done, total, label) {
  const share = `${(100 * done) / total}%`;
  return svg(
    "svg",
    { role: "progressbar", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": total, "aria-valuenow": done, width: "100%", height: 8 },
    svg("rect", { class: "track", width: "100%", height: 8 }),
    svg("rect", { "data-tone": done === total ? "done" : "running", width: share, height: 8 }),
  );
}

function listed(files) {
  const rest = files.length - FILES_SHOWN;
  const items = files.slice(0, FILES_SHOWN).map((path) => element("li", {}, element("code", {}, path)));
  return [element("ul", {}, ...items, ...(rest > 0 ? [element("li", { class: "note" }, `and ${rest} more`)] : []))];
}
