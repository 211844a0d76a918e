// Notifications of the browser, for who asked for them: off until then, and this browser alone remembers it.

import { setText } from "../dom.js";

const WANTED = "orrery.notify";
let before = null; // how much waited at the last look

// The button that asks; `null` on pages without one.
export function offerNotifications(button) {
  if (!button || !("Notification" in window)) return;
  button.hidden = false;
  button.addEventListener("click", async () => {
    if (isOn()) localStorage.removeItem(WANTED);
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(WANTED, "yes");
    else setText(button, "The browser does not allow notifications");
    if (isOn() || Notification.permission === "granted") show(button);
  });
  show(button);
}

// A notification when there is more than at the last look, and nobody looks at this page.
export function tellNews(waiting, count) {
  const isMore = before !== null && waiting > before;
  before = waiting;
  if (isMore && isOn() && document.hidden) new Notification("Orrery needs you", { body: `${count} waiting for you`, tag: "orrery" });
}

function isOn() {
  return "Notification" in window && Notification.permission === "granted" && localStorage.getItem(WANTED) !== null;
}

function show(button) {
  setText(button, isOn() ? "Stop notifying me" : "Notify me of what waits");
  button.setAttribute("aria-pressed", String(isOn()));
}
