// The page of one session: one stream folded into one store, and the views of it brought up to date once per frame.

import * as api from "../api.js";
import { Connection } from "../connection.js";
import { element, pageData, setText } from "../dom.js";
import { Address } from "./address.js";
import { InPlace } from "./edit/in_place.js";
import { DevicesStrip } from "./devices_strip.js";
import { Focus } from "./focus.js";
import { GraphView } from "./graph_view.js";
import { Header } from "./header.js";
import { AgentView } from "./inspect/agent.js";
import { ApprovalView } from "./inspect/approval.js";
import { DeviceView } from "./inspect/device.js";
import { EditView } from "./inspect/edit.js";
import { TaskView } from "./inspect/task.js";
import { Inspector } from "./inspector.js";
import { LogView } from "./log/log_view.js";
import { NeedsYou } from "./needs_you.js";
import { Outbox } from "./outbox.js";
import { Overview } from "./overview.js";
import { tablesOf } from "./snapshot.js";
import { Store } from "./store.js";
import { TableView } from "./table/table_view.js";
import { Tabs } from "./tabs.js";
import { TimeBar } from "./time/time_bar.js";
import { TimelineView } from "./timeline/timeline_view.js";
import { Truth } from "./truth.js";

const CLOCK_MS = 1000;
const PHONE = "(max-width: 40rem)"; // as in session.css
let hasBegun = false;

const at = (selector) => document.querySelector(selector);
const address = new Address(() => followAddress());
const store = new Store(pageData("config"), address);
const truth = new Truth(store, at("#connection"), () => connection.renew());
const stream = {
  readHead: async () => (await api.session(store.config.session)).head,
  has: (seq) => store.present.seq >= seq,
  isTaken: (id) => store.hasCommand(id),
};
const outbox = new Outbox({ tell, truth, stream });
const header = new Header(at("#head"), { store, truth, outbox });
const overview = new Overview(at("#overview"), { store });
const graphView = new GraphView(at("#view-graph"), { store });
const inPlace = new InPlace({ store, outbox, graph: graphView.graph, tell });
const views = [
  graphView,
  new TimelineView(at("#view-timeline"), { store }),
  new TableView(at("#view-table"), { store, inPlace }),
  new LogView(at("#view-log"), { store }),
];
const focus = new Focus();
const tabs = new Tabs(at("#tabs"), { store, views, home: matchMedia(PHONE).matches ? "table" : "graph" });
const kinds = {
  task: new TaskView(at("#drawer"), { store, outbox, inPlace }),
  agent: new AgentView(at("#agent-view"), { store, outbox }),
  edit: new EditView(at("#edit-view"), { store, outbox }),
  approval: new ApprovalView(at("#approval-view"), { store }),
  device: new DeviceView(at("#device-view"), { store, openInFull: (id) => devices.openInFull(id) }),
};
const needsYou = new NeedsYou(at("#needs-you"), { store });
const inspector = new Inspector({ store, overview, kinds });
const devices = new DevicesStrip(at("#devices"), at("#device"), { store, tell });
const timeBar = new TimeBar(at("#time"), { store, outbox, tell });
const connection = new Connection({
  url,
  onSnapshot,
  onEvents,
  onState: (state) => truth.connected(state),
  onHeartbeat: (message) => truth.heartbeat(message),
  onStanding: (standing) => truth.stands(standing),
  onDeltas: (deltas) => overview.sayings.hear(deltas),
  onRefused,
});

store.add(truth, header, tabs, inspector, needsYou, inPlace, devices, timeBar, { update: drawChoice, show: drawChoice, truthChanged: () => header.draw() });

function url(seq) {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  return `${scheme}//${location.host}/ws/sessions/${store.config.session}/?deltas=1${seq === null ? "" : `&since=${seq}`}`;
}

// The present comes over HTTP, compressed and while modules load; the websocket goes on behind it, or brings a snapshot itself.
async function begin() {
  try {
    const { seq, tables } = await api.present(store.config.session);
    connection.join(seq, tablesOf(tables, store.config.defaults).then((made) => loaded(() => store.take({ seq, tables: made }))));
  } catch (error) {
    console.warn("the snapshot cannot be read:", error.message);
    connection.open();
  }
}

function onSnapshot(snapshot) {
  loaded(() => store.load(snapshot));
  return store.present.seq;
}

function loaded(load) {
  load();
  truth.look();
  overview.tellPast(store.present.seq).catch((error) => console.warn("earlier events cannot be read:", error.message));
  if (hasBegun) return;
  hasBegun = true;
  followAddress();
  timeBar.start();
}

function onEvents(events) {
  store.apply(events);
  return store.present.seq;
}

function onRefused(code, message) {
  if (code === "not_authenticated") location.reload();
  else tell(message);
}

// `#task-ID` opens a task, `#approval-ID` goes to a card, from this page and from others.
function followAddress() {
  const { selection } = address;
  store.select(selection);
  if (selection?.kind === "approval") document.getElementById(`approval-${selection.id}`)?.focus();
  tabs.openView(address.get("tab"));
}

function drawChoice(changes) {
  if (changes?.has && !changes.has("constellation")) return;
  const select = at("#constellations");
  const rows = [...store.fold.table("constellation").values()].sort((a, b) => b.id - a.id);
  select.replaceChildren(
    ...rows.map((row, i) => element("option", { value: row.id }, `${row.name || "constellation"} ${rows.length > 1 ? `#${rows.length - i}` : ""} · ${row.state.toLowerCase().replaceAll("_", " ")}`)),
  );
  select.value = store.constellation ?? "";
  select.hidden = rows.length < 2;
}

function tell(text) {
  setText(at("#notice"), text);
  at("#notice").hidden = !text;
}

function frame(time) {
  tabs.frame(time);
  inspector.frame(time);
  header.frame(time);
  needsYou.frame(time);
  focus.frame();
  requestAnimationFrame(frame);
}

function tick() {
  store.tell("tick");
  outbox.tick();
}

at("#constellations").addEventListener("change", (event) => store.choose(Number(event.target.value)));
tabs.openView(address.get("tab"));
header.draw();
begin();
requestAnimationFrame(frame);
setInterval(tick, CLOCK_MS);
devices.start();
