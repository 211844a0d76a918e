// The page of all devices: a card of each, kept fresh, and the dialog of one.

import * as api from "./api.js";
import { DeviceCards } from "./device_cards.js";
import { DeviceDialog } from "./device_dialog.js";
import { pageData, setText } from "./dom.js";
import { Poll } from "./poll.js";

const EVERY_MS = 3000;
const LONGEST_MS = 60_000;

const config = pageData("config");
const now = () => Date.now() + skew;
const skew = config.now - Date.now(); // server's clock minus ours
const list = document.querySelector("#devices");
const cards = new DeviceCards(list, { mayMake: config.may_make_devices, now });
const notice = document.querySelector("#notice");
const poll = new Poll(look, { everyMs: EVERY_MS, longestMs: LONGEST_MS, onTrouble: tell });
const dialog = new DeviceDialog(document.querySelector("#device"), { mayMake: config.may_make_devices, now, onChange: () => poll.soon() });

async function look() {
  const devices = (await api.devices()).results;
  cards.draw(devices.sort((a, b) => a.name.localeCompare(b.name)));
  document.querySelector("#none").hidden = devices.length > 0;
}

function tell(error) {
  setText(notice, error ? error.message : "");
  notice.hidden = !error;
}

list.addEventListener("click", (event) => {
  const { open, then } = event.target.closest("[data-open]")?.dataset ?? {};
  if (open) dialog.open(open, then).catch(tell);
});
document.querySelector("#make")?.addEventListener("click", () => dialog.make());
poll.soon();
