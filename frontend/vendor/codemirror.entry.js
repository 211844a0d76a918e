export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { yaml } from "@codemirror/lang-yaml";
export { HighlightStyle, bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
export { lintKeymap, setDiagnostics } from "@codemirror/lint";
export { search, searchKeymap } from "@codemirror/search";
export { EditorState, RangeSet, StateEffect, StateField } from "@codemirror/state";
export { EditorView, GutterMarker, gutterLineClass, keymap, lineNumbers, placeholder } from "@codemirror/view";
export { tags } from "@lezer/highlight";
