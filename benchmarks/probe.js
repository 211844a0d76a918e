// Runs in the page before anything else: notes long tasks, frames, and how late an event is on the screen. Times in ms.
{
  const PATIENCE_MS = 60_000;
  const probe = { long: [], frames: [], lags: [], socket: 0, isWatching: false };
  const due = []; // [seq, when its event was recorded, by the server's clock, which is ours]
  let last = 0;
  window.probe = probe;
  new PerformanceObserver((list) => probe.long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask", buffered: true });

  // Looked for in the text: to parse every message again would slow what is measured.
  function note(text) {
    probe.socket += text.length;
    if (!probe.isWatching) return;
    const seq = /"seq":(\d+)/.exec(text.slice(text.lastIndexOf('"seq":')));
    const at = /"at":"([^"]+)"/.exec(text.slice(text.lastIndexOf('"at":"')));
    if (text.startsWith('{"type":"events"') && seq && at) due.push([Number(seq[1]), Date.parse(at[1])]);
  }

  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", ({ data }) => note(data));
    }
  };

  // What was applied when a frame is painted is seen by a task behind its painting: the next frame begins after the pixels.
  // This callback comes before those of the page, so that it cannot look itself.
  let applied = 0;
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => (applied = Number(document.body?.dataset.seq ?? 0));
  function frame(time) {
    if (probe.isWatching && last) probe.frames.push(time - last);
    last = time;
    while (due.length && due[0][0] <= applied) probe.lags.push(Date.now() - due.shift()[1]);
    port2.postMessage(null);
    requestAnimationFrame(frame);
  }
  requestAnimationFrame(frame);

  probe.watch = () => {
    Object.assign(probe, { long: [], frames: [], lags: [], isWatching: true });
    due.length = last = 0;
  };

  // Bytes of the first rows over HTTP, of all messages of the websocket, and how many static files the server was asked for.
  probe.loaded = () => {
    const loaded = performance.getEntriesByType("resource");
    const snapshots = loaded.filter(({ name }) => name.endsWith("/snapshot/"));
    const asked = loaded.filter(({ name, transferSize }) => name.includes("/static/") && transferSize);
    return { snapshot: snapshots.reduce((sum, { transferSize }) => sum + transferSize, 0), socket: probe.socket, static: asked.length };
  };

  const painted = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));

  // Drags to a share of the stream's time; resolves with the ms until that moment is painted.
  probe.sought = async (share) => {
    const input = document.querySelector("#time input[type=range]");
    const shown = new Promise((resolve, reject) => {
      new MutationObserver(resolve).observe(document.body, { attributeFilter: ["data-moment"] });
      setTimeout(() => reject(new Error(document.querySelector("#notice").textContent || "the moment was not shown")), PATIENCE_MS);
    });
    input.value = Math.floor(input.max * share);
    const begun = performance.now();
    input.dispatchEvent(new Event("input"));
    await shown;
    await painted();
    return performance.now() - begun;
  };

  // Scrolls the table frame by frame, half of the way by three rows, half by a page and more.
  probe.scrolled = async (steps) => {
    const table = document.querySelector(".table-scroll");
    for (let step = 0; step < steps; step++) {
      table.scrollTop += step < steps / 2 ? 84 : 1500;
      await new Promise(requestAnimationFrame);
    }
  };

  // Resolves when the page shows a graph of so many tasks, with the ms since its navigation began.
  probe.shown = (tasks) =>
    new Promise((resolve) => {
      const look = () => {
        const graph = document.querySelector("#graph");
        if (Number(graph?.dataset.tasks) !== tasks) requestAnimationFrame(look);
        else requestAnimationFrame(() => resolve(performance.now()));
      };
      look();
    });
}
