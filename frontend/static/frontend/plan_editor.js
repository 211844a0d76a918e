// The editor of plans: YAML and JSON in colours, with the lines marked that the server refuses. plan_box.js brings it.

import {
  EditorState,
  EditorView,
  GutterMarker,
  HighlightStyle,
  RangeSet,
  StateEffect,
  StateField,
  bracketMatching,
  defaultKeymap,
  gutterLineClass,
  history,
  historyKeymap,
  indentOnInput,
  indentWithTab,
  keymap,
  lineNumbers,
  lintKeymap,
  placeholder,
  search,
  searchKeymap,
  setDiagnostics,
  syntaxHighlighting,
  tags,
  yaml,
} from "./vendor/codemirror.js";

const LINE_EM = 1.5;
const COLOURS = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: "var(--accent)" },
  { tag: tags.string, color: "var(--done)" },
  { tag: [tags.special(tags.string), tags.labelName, tags.typeName, tags.keyword], color: "var(--pending)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.separator, tags.punctuation, tags.bracket, tags.meta], color: "var(--quiet)" },
]);

class BadLine extends GutterMarker {
  elementClass = "bad";
}

const badLine = new BadLine();
const setBadLines = StateEffect.define();
const badLines = StateField.define({
  create: () => RangeSet.empty,
  update(lines, transaction) {
    const told = transaction.effects.find((effect) => effect.is(setBadLines));
    return told ? RangeSet.of(told.value.map((from) => badLine.range(from)), true) : lines.map(transaction.changes);
  },
  provide: (field) => gutterLineClass.from(field),
});

// Writes over a selection by itself, and whatever is more than a letter: the browser would give what is typed the colours of
// what was there, as a style that the page's policy forbids.
const writesOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== "insertText" || event.data === null || view.composing) return false;
    const { from, to } = selected(view);
    if (from === to && event.data.length === 1) return false;
    event.preventDefault();
    const changes = { from, to, insert: view.state.toText(event.data) };
    view.dispatch({ changes, selection: { anchor: from + changes.insert.length }, userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

// What is selected, as the browser knows it: the editor hears of that a little later. Of a selection that is longer than what is
// drawn the browser knows the drawn part.
function selected(view) {
  const { main } = view.state.selection;
  const selection = document.getSelection();
  if (!view.contentDOM.contains(selection.anchorNode)) return main;
  const range = selection.getRangeAt(0);
  const from = view.posAtDOM(range.startContainer, range.startOffset);
  const to = view.posAtDOM(range.endContainer, range.endOffset);
  const isDrawnPart = from === Math.max(main.from, view.viewport.from) && to === Math.min(main.to, view.viewport.to);
  return isDrawnPart ? main : { from, to };
}

export class PlanEditor {
  // Takes the place of `area`, a textarea, which stays the form's field: what a browser keeps of a form, it keeps.
  constructor(area, onInput) {
    this.area = area;
    const hadFocus = document.activeElement === area;
    this.view = new EditorView({ state: this.#state(area.value, onInput) });
    this.view.dom.style.height = `calc(${area.rows * LINE_EM}em + 1rem)`;
    area.hidden = true;
    area.after(this.view.dom);
    for (const name of ["aria-label", "aria-describedby"]) area.removeAttribute(name);
    if (!hadFocus) return;
    this.view.dispatch({ selection: { anchor: area.selectionStart, head: area.selectionEnd } });
    this.view.focus();
  }

  #state(doc, onInput) {
    const { area } = this;
    const named = { tabindex: "0", "aria-label": area.ariaLabel, "aria-describedby": area.getAttribute("aria-describedby") };
    const keys = [indentWithTab, ...lintKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap];
    const changed = EditorView.updateListener.of((update) => {
      if (!update.docChanged) return;
      area.value = update.state.doc.toString();
      onInput();
    });
    return EditorState.create({
      doc,
      extensions: [
        EditorView.cspNonce.of(document.querySelector("link[data-editor]").nonce),
        EditorView.contentAttributes.of(named),
        [lineNumbers(), badLines, history(), bracketMatching(), indentOnInput(), search({ top: true })],
        [yaml(), syntaxHighlighting(COLOURS), placeholder(area.placeholder), keymap.of(keys), writesOver, changed],
      ],
    });
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
  }

  // `problems`: [{line, column, message}]; what has no line stands below the editor only.
  mark(problems) {
    const { state } = this.view;
    const placed = problems.filter(({ line }) => line >= 1 && line <= state.doc.lines);
    const diagnostics = placed.map((problem) => {
      const line = state.doc.line(problem.line);
      const indent = line.text.length - line.text.trimStart().length;
      const from = Math.min(line.from + (problem.column ? problem.column - 1 : indent), line.to);
      return { from, to: line.to, severity: "error", message: problem.message };
    });
    this.view.dispatch(setDiagnostics(state, diagnostics), {
      effects: setBadLines.of([...new Set(placed.map(({ line }) => state.doc.line(line).from))]),
    });
    this.view.contentDOM.toggleAttribute("aria-invalid", problems.length > 0);
  }

  goTo(line) {
    const { doc } = this.view.state;
    const { from, to } = doc.line(Math.min(line, doc.lines));
    this.view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    this.view.focus();
  }
}
