// The page of all sessions: the request box, and the list kept fresh.

import { createSession } from "./api.js";
import { pageData } from "./dom.js";
import { ago } from "./format.js";
import { payloadOf, PlanBox } from "./plan_box.js";

const REFRESH_MS = 4000;

const form = document.querySelector("form.request");
if (form) new PlanBox(form, pageData("examples"), start);

async function start(text, title) {
  const { id } = await createSession(title, payloadOf(text));
  location.assign(`/sessions/${id}/`);
}

// The same page again, of which the list is taken over: one template makes it, here and at first.
async function refresh() {
  if (document.hidden) return;
  const response = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!response.ok || response.redirected) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const [fresh, list] = [page, document].map((one) => one.querySelector("#sessions"));
  if (fresh && list && fresh.textContent !== list.textContent) list.replaceWith(document.adoptNode(fresh));
  tellTimes();
}

function tellTimes() {
  for (const time of document.querySelectorAll("#sessions time")) {
    time.textContent = ago(time.dateTime, Date.now());
    time.title = new Date(time.dateTime).toLocaleString();
  }
}

tellTimes();
setInterval(() => refresh().catch((error) => console.warn("the list was not refreshed:", error.message)), REFRESH_MS);
