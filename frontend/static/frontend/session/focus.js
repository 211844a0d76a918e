// The keyboard's place on a page that draws itself anew: where what has the focus goes away, the focus stays beside it.
//
// Only what the keyboard chose is kept: who points with a mouse and then loses a button is not moved about the page.

const FOCUSABLE = ':is(a[href], button, input, select, textarea, summary, [tabindex="0"]):not(:disabled)';

export class Focus {
  #path = []; // what has the focus and what it is in, from the inside out

  constructor() {
    addEventListener("focusin", ({ target }) => (this.#path = pathOf(target)));
    addEventListener("pointerdown", () => (this.#path = []));
  }

  frame() {
    const at = document.activeElement;
    if ((at && at !== document.body) || !this.#path.length) return;
    const [gone, ...around] = this.#path;
    if (isSeen(gone)) return; // left on purpose, to nowhere
    const place = around.find(isSeen);
    const next = [...(place?.querySelectorAll(FOCUSABLE) ?? [])].find(isSeen) ?? place;
    if (next && !next.matches(`${FOCUSABLE}, [tabindex]`)) next.tabIndex = -1;
    next?.focus();
  }
}

function pathOf(element) {
  const path = [];
  for (let one = element; one && one !== document.body; one = one.parentElement) path.push(one);
  return path.filter((one) => one === element || one instanceof HTMLElement); // a drawing's parts are no place to be
}

const isSeen = (element) => element.isConnected && element.checkVisibility();
