// The home page: the request box, with examples and the reader's own recent requests, and the list of sessions.

import { createSession } from "../api.js";
import { pageData } from "../dom.js";
import { payloadOf, PlanBox } from "../plan_box.js";
import { SessionsList } from "./sessions_list.js";

const form = document.querySelector("form.request");
if (form) begin(form);
new SessionsList(document.querySelector("#sessions"));

function begin(form) {
  const box = new PlanBox(form, pageData("examples"), start);
  const recent = pageData("recent");
  document.querySelector(".recent")?.addEventListener("click", (event) => {
    const pressed = event.target.closest("button");
    if (pressed) box.setText(recent[Number(pressed.value)].text);
  });
}

async function start(text, title) {
  const { id } = await createSession(title, payloadOf(text));
  location.assign(`/sessions/${id}/`);
}
