// A page that the server writes, kept fresh: it is asked for again, and of its parts (`data-part`) those that differ are taken over.
//
// Whoever reads keeps their place: the focus, what is scrolled, and what is open stay as they were.

export class FreshParts {
  #written = new Map(); // part > as the server wrote it last

  // `dress(part)` gives what the server wrote its looks; `counterpart(part, node)` finds in a fresh part what had the focus.
  constructor({ dress, counterpart = counterpartOf }) {
    Object.assign(this, { dress, counterpart });
    for (const part of document.querySelectorAll("[data-part]")) {
      this.#written.set(part.dataset.part, part.outerHTML);
      dress(part);
    }
  }

  async look() {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (response.redirected) return location.reload();
    if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const part of document.querySelectorAll("[data-part]")) this.#takeOver(part, page.querySelector(`[data-part="${part.dataset.part}"]`));
  }

  #takeOver(part, fresh) {
    const text = fresh.outerHTML;
    if (this.#written.get(part.dataset.part) === text || part.matches(":active")) return;
    this.#written.set(part.dataset.part, text);
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const scrolled = [...part.querySelectorAll(".scroll, pre")].map((one) => [one.scrollLeft, one.scrollTop]);
    const opened = [...part.querySelectorAll("details[open]")].map((one) => one.id);
    const taken = document.adoptNode(fresh);
    for (const id of opened) taken.querySelector(`#${CSS.escape(id)}`)?.setAttribute("open", "");
    this.dress(taken);
    part.replaceWith(taken);
    taken.querySelectorAll(".scroll, pre").forEach((one, i) => one.scrollTo(...(scrolled[i] ?? [0, 0])));
    if (focused) this.counterpart(taken, focused)?.focus({ preventScroll: true });
  }
}

export function counterpartOf(part, { id, href, className }) {
  if (id) return part.querySelector(`#${CSS.escape(id)}`);
  if (href) return [...part.querySelectorAll("a")].find((link) => link.href === href);
  return className ? part.querySelector(`.${className.split(" ").join(".")}`) : part.querySelector("[tabindex]");
}
