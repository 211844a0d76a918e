// The menu of one row of the table: what may be done with its task, by mouse and by keyboard alike.

import { element } from "../../dom.js";
import { html, render } from "../../vendor/lit.js";

const STEPS = { ArrowDown: 1, ArrowUp: -1 };

export class RowMenu {
  // `host` gets the menu; `onClosed()` is called when it goes, so that the keyboard goes back to where it was.
  constructor(host, { onClosed }) {
    this.node = element("div", { class: "row-menu", role: "menu", popover: "auto" });
    host.append(this.node);
    this.node.addEventListener("keydown", (event) => this.#key(event));
    this.node.addEventListener("toggle", (event) => event.newState === "closed" && this.node.contains(document.activeElement) && onClosed());
    this.onClosed = onClosed;
  }

  // `choices`: [{name, act}]; `at`: {x, y} in the window, where the menu begins.
  open(label, choices, at) {
    const choose = (act) => () => {
      this.node.hidePopover();
      this.onClosed();
      act();
    };
    this.node.setAttribute("aria-label", label);
    render(
      choices.map(({ name, act }) => html`<button type="button" role="menuitem" tabindex="-1" @click=${choose(act)}>${name}</button>`),
      this.node,
    );
    this.node.showPopover();
    const { width, height } = this.node.getBoundingClientRect();
    this.node.style.left = `${Math.max(4, Math.min(at.x, innerWidth - width - 4))}px`;
    this.node.style.top = `${Math.max(4, Math.min(at.y, innerHeight - height - 4))}px`;
    this.node.querySelector("button")?.focus();
  }

  #key(event) {
    const items = [...this.node.querySelectorAll("button")];
    const place = items.indexOf(document.activeElement);
    if (event.key in STEPS) items.at((place + STEPS[event.key]) % items.length).focus();
    else if (event.key === "Home") items[0].focus();
    else if (event.key === "End") items.at(-1).focus();
    else if (event.key === "Tab") this.node.hidePopover();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
