// The graph on a constellation's page, drawn as the dashboard draws it: the same layout, the same looks.

import { element, icon, pageData } from "../frontend/dom.js";
import { Fold } from "../frontend/fold.js";
import { Graph } from "../frontend/graph/graph.js";
import { lookOf } from "../frontend/states.js";

const { constellation, rows, counts, task } = pageData("picture");
const EMPTY = { constellation_id: constellation, name: "", reason: "", error: "", attempt: 0, attempts_before: 0, device_id: null, wanted_device: "", device_type: "", capabilities: [], started_at: null, ended_at: null };
const fold = new Fold({ task: EMPTY, dependency: { constellation_id: constellation, condition: "" } });
fold.load({ seq: 0, rows: Object.fromEntries(Object.entries(rows).map(([table, all]) => [table, Object.fromEntries(all.map((row) => [row.id, row]))])) });

const graph = new Graph(document.querySelector(".o-graph"), {
  fold,
  deviceName: (row) => row.device_name || row.wanted_device || row.device_type || (row.capabilities ?? []).join(", "),
  onOpen: (id) => location.assign(task.replace("/0/", `/${id}/`)),
  now: () => Date.now(),
});
graph.show(constellation);

document.querySelector(".o-counts").append(
  ...Object.entries(counts).map(([state, count]) => {
    const look = lookOf("task", state);
    return element("li", { "data-tone": look.tone }, icon(look.shape), `${count.toLocaleString("en")} ${look.word.toLowerCase()}`);
  }),
);
for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => (button.dataset.zoom === "fit" ? graph.fit() : graph.zoom(Number(button.dataset.zoom))));
}
