// A dialog that asks before something is done that cannot be taken back: in words, with a reason where one is wanted.

import { html, nothing, render } from "../vendor/lit.js";

// Resolves to {reason}, or null when the reader thinks better of it. `verb` is what the button says.
export function askBefore({ title, text, verb, wantsReason = false, isDangerous = false }) {
  const dialog = document.createElement("dialog");
  dialog.className = "asking";
  dialog.setAttribute("aria-labelledby", "asking-title");
  const reason = html`<label>Reason <input name="reason" maxlength="500" autocomplete="off" placeholder="optional, kept in the history"></label>`;
  render(
    html`<form method="dialog">
      <h2 id="asking-title">${title}</h2>
      <p>${text}</p>
      ${wantsReason ? reason : nothing}
      <div class="buttons">
        <button value="" class="quiet">Not now</button>
        <button value="yes" class=${isDangerous ? "danger" : "primary"} autofocus>${verb}</button>
      </div>
    </form>`,
    dialog,
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes" ? { reason: dialog.querySelector("input")?.value ?? "" } : null);
      dialog.remove();
    });
  });
}
