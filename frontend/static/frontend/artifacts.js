// What the attempts of a task have left in the store, with links that download it.

import { element } from "./dom.js";
import { fileSize } from "./format.js";

const SHOWN = 50; // the newest

// `attempts` are those of the task.
export function drawArtifacts(section, fold, attempts) {
  const numbers = new Map(attempts.map((one) => [one.id, one.number]));
  const kept = [...fold.table("artifact").values()].filter((one) => numbers.has(one.attempt_id)).sort((a, b) => b.id - a.id);
  section.hidden = !kept.length;
  section.querySelector("ul").replaceChildren(...kept.slice(0, SHOWN).map((one) => item(one, numbers.get(one.attempt_id))));
}

function item(one, number) {
  const name = one.removed_at
    ? element("s", { title: "Its content was removed" }, one.name)
    : element("a", { href: `/api/artifacts/${one.id}/content/`, download: "" }, one.name);
  return element("li", { "data-artifact": one.id }, name, element("span", { class: "note" }, ` ${one.kind} · ${fileSize(one.size)} · attempt ${number}`));
}
