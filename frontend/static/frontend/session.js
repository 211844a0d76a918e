// The page of one session: one stream folded, and what it shows brought up to date once per frame.

import * as api from "./api.js";
import { Connection } from "./connection.js";
import { element, pageData, setText } from "./dom.js";
import { Drawer } from "./drawer.js";
import { Feed } from "./feed.js";
import { Changes, Fold } from "./fold.js";
import { Graph } from "./graph.js";
import { drawActor, drawAgents, drawCounters, drawDevices, drawProgress, drawRequests, newest, tally } from "./panels.js";
import { payloadOf, PlanBox } from "./plan_box.js";
import { Poll } from "./poll.js";
import { isSkipped } from "./states.js";
import { WaitingPanel } from "./waiting_panel.js";

const PANELS_MS = 200; // the panels are read, not watched: this often is enough under a flood
const CLOCK_MS = 1000; // and this often for the times in them
const DEVICES_MS = 5000; // between two looks at the devices' slots
const SLOTS_MS = 700; // after which a start or an end of ours shows there
const LIFE_MS = 15_000; // between two looks at the actor's heartbeat
const LIFE_LONGEST_MS = 120_000; // and at most, while they fail
const FEED_PAST = 100; // events that the feed shows from before the page was opened

const config = pageData("config");
const skew = config.now - Date.now(); // server's clock minus ours
const now = () => Date.now() + skew;
const fold = new Fold(config.defaults);
const deviceById = new Map(config.devices.map((device) => [device.id, device]));
const at = (selector) => document.querySelector(selector);

let stale = new Changes();
let drawnAt = 0;
let shown = null; // the constellation on view
let devicesTimer = 0;
let slotsTimer = 0;
let life = null; // the latest actor, with its heartbeat
let chosen = false; // by the reader, so that a newer one does not take its place

const graph = new Graph(at("#graph"), { fold, deviceName, onOpen: open, now });
const feed = new Feed(at("#feed"), { fold, deviceName, onOpen: open });
const drawer = new Drawer(at("#drawer"), { fold, deviceName, now, onFind: open, onClose: () => graph.select(null) });
const waiting = new WaitingPanel(at("#waiting-panel"), { fold, config, nameOf, now });
const connection = new Connection({ url, onSnapshot, onEvents, onState: showConnection, onRefused });

function url(seq) {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  return `${scheme}//${location.host}/ws/sessions/${config.session}/${seq === null ? "" : `?since=${seq}`}`;
}

function deviceName(task) {
  return nameOf(task.device_id) || task.wanted_device || task.device_type || (task.capabilities ?? []).join(", ");
}

function nameOf(deviceId) {
  return (fold.get("device", deviceId) ?? deviceById.get(deviceId))?.name ?? "";
}

function onSnapshot(snapshot) {
  const first = connection.seq === null;
  fold.load(snapshot);
  feed.clear();
  tellPast(snapshot.seq).catch((error) => console.warn("earlier events cannot be read:", error.message));
  const changes = new Changes();
  for (const [name, rows] of Object.entries(fold.rows)) for (const id of rows.keys()) changes.note(name, id, true);
  applied(changes);
  if (first) followAddress();
  return fold.seq;
}

function onEvents(events) {
  const changes = new Changes();
  for (const event of events) fold.apply(event, changes);
  feed.push(events);
  applied(changes);
  return fold.seq;
}

async function tellPast(seq) {
  if (!seq) return;
  const { events } = await api.events(config.session, Math.max(0, seq - FEED_PAST), FEED_PAST);
  fold.remember(events);
  feed.push(events.filter((event) => event.seq <= seq));
}

// The graph shows a change in the same frame; the panels gather changes for a moment.
function applied(changes) {
  follow(changes);
  graph.update(changes);
  drawer.update(changes);
  waiting.update(changes);
  for (const [name, ids] of Object.entries(changes.ids)) for (const id of ids) stale.note(name, id, changes.structure.has(name));
  document.body.dataset.seq = fold.seq;
}

// Shows the newest constellation, unless the reader has chosen one.
function follow(changes) {
  if (!changes.has("constellation")) return;
  const last = newest(fold.table("constellation"));
  if (last && !chosen && shown !== last.id) show(last.id);
  drawChoice();
}

function show(id) {
  shown = id;
  graph.show(id);
}

function drawChoice() {
  const select = at("#constellations");
  const rows = [...fold.table("constellation").values()].sort((a, b) => b.id - a.id);
  select.replaceChildren(
    ...rows.map((row, i) => element("option", { value: row.id }, `${row.name || "constellation"} ${rows.length > 1 ? `#${rows.length - i}` : ""} · ${row.state.toLowerCase().replaceAll("_", " ")}`)),
  );
  select.value = shown ?? "";
  select.hidden = rows.length === 0;
  const edit = at("#edit"); // only who is staff has it
  if (!edit || !shown) return;
  edit.href = config.admin.replace("/0/", `/${shown}/`);
  edit.hidden = false;
}

function open(taskRow) {
  const task = fold.get("task", taskRow);
  if (!task) return;
  if (task.constellation_id !== shown) choose(task.constellation_id);
  drawer.open(taskRow);
  graph.find(taskRow, false);
  graph.select(taskRow);
}

// `#task-ID` opens a task, `#approval-ID` goes to a card, from the panels of this page and from other pages.
function followAddress() {
  const [, kind, id] = /^#(task|approval)-(\d+)$/.exec(location.hash) ?? [];
  if (kind === "task") open(Number(id));
  if (kind === "approval") document.getElementById(`approval-${id}`)?.focus();
}

function choose(id) {
  chosen = newest(fold.table("constellation"))?.id !== id;
  show(id);
  drawChoice();
  stale.note("task", 0, true);
}

function frame(time) {
  graph.tick(time);
  feed.tick(time);
  const due = Object.keys(stale.ids).length ? PANELS_MS : CLOCK_MS;
  if (time - drawnAt > due) {
    drawnAt = time;
    drawPanels(stale);
    stale = new Changes();
  }
  requestAnimationFrame(frame);
}

function drawPanels(changes) {
  if (changes.has("attempt")) slotsTimer ||= setTimeout(lookAtSlots, SLOTS_MS);
  waiting.tick();
  drawer.tick();
  drawActor(at("#actor"), fold, config.actor_choices, config.may_operate, life, now());
  drawAgents(at("#agents"), fold, nameOf, now());
  if (!at("#requests").contains(document.activeElement) || changes.has("inbox")) drawRequests(at("#requests"), fold, now());
  if (!changes.has("task", "device", "constellation")) return;
  const counts = tally(fold, shown);
  drawProgress(at("#progress"), counts);
  if (!at("#counters").contains(document.activeElement)) drawCounters(at("#counters"), counts);
  drawDevices(at("#devices"), devices());
  at("#empty").hidden = counts.total > 0;
}

function devices() {
  for (const [id, row] of fold.table("device")) deviceById.set(id, { ...deviceById.get(id), ...row });
  return [...deviceById.values()].sort((a, b) => a.name.localeCompare(b.name));
}

// Slots taken are not in the stream: they are looked up now and then while the page is seen, and when attempts change.
async function refreshDevices() {
  clearTimeout(devicesTimer);
  devicesTimer = setTimeout(look, DEVICES_MS);
  if (document.hidden) return;
  for (const device of (await api.devices()).results) deviceById.set(device.id, { ...deviceById.get(device.id), ...device });
  drawDevices(at("#devices"), devices());
}

// Nor are heartbeats.
async function lookForLife() {
  life = (await api.session(config.session)).actors[0] ?? null;
}

function lookAtSlots() {
  slotsTimer = 0;
  look();
}

function look() {
  refreshDevices().catch((error) => console.warn("devices cannot be read:", error.message));
}

function showConnection(state) {
  const words = { connecting: "Connecting…", live: "Live", lost: "Connection lost, trying again…" };
  const sign = at("#connection");
  sign.dataset.state = state;
  setText(sign.querySelector("span"), words[state]);
}

function onRefused(code, message) {
  if (code === "not_authenticated") location.reload();
  else tell(message);
}

async function command(button) {
  const { command: kind, reason } = button.dataset;
  button.disabled = true;
  try {
    await api.sendCommand(config.session, kind, reason ?? "");
    tell("");
  } catch (error) {
    tell(error.message);
  } finally {
    button.disabled = false;
  }
}

function tell(text) {
  setText(at("#notice"), text);
  at("#notice").hidden = !text;
}

let found = null; // the task that the last look for one led to

// The next task after the last one found, in the order of the graph, for which `wanted(task)` holds.
function findNext(wanted) {
  const ids = graph.scene?.ids ?? [];
  const start = ids.indexOf(found) + 1;
  for (let i = 0; i < ids.length; i++) {
    const id = ids[(start + i) % ids.length];
    if (!wanted(fold.get("task", id))) continue;
    found = id;
    graph.find(id, false);
    graph.select(id);
    return;
  }
}

function search(text) {
  const sought = text.trim().toLowerCase();
  if (sought) findNext((task) => `${task.task_id} ${task.name}`.toLowerCase().includes(sought));
}

function listen() {
  addEventListener("hashchange", followAddress);
  at("#actor").addEventListener("click", (event) => {
    const button = event.target.closest("button[data-command]");
    if (button) command(button);
  });
  at("#constellations").addEventListener("change", (event) => choose(Number(event.target.value)));
  at("#zoom-in").addEventListener("click", () => graph.zoom(1));
  at("#zoom-out").addEventListener("click", () => graph.zoom(-1));
  at("#fit").addEventListener("click", () => graph.fit());
  at("#counters").addEventListener("click", (event) => {
    const state = event.target.closest("button")?.dataset.find;
    if (state) findNext((task) => (isSkipped(task) ? "SKIPPED" : task.state) === state);
  });
  at("#search").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    search(event.target.value);
  });
  const form = at("form.request");
  if (form) {
    const box = new PlanBox(form, pageData("examples"), async (text) => {
      await api.submitRequest(config.session, payloadOf(text));
      box.clear();
      form.closest("details").open = false;
      chosen = false;
    });
  }
}

listen();
drawPanels(new Changes());
connection.open();
requestAnimationFrame(frame);
look();
new Poll(lookForLife, { everyMs: LIFE_MS, longestMs: LIFE_LONGEST_MS }).soon();
