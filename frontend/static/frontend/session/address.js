// The page's address holds what is on view: `?tab=table&at=1200&filter=failed#task-12`. Whoever is sent it sees the same.

const NUMBERED = /^#(task|agent|edit|approval|device)-(\d+)$/;

export class Address {
  // `onChange()` hears when the reader went back or forward, or followed a link on the page.
  constructor(onChange) {
    addEventListener("hashchange", onChange);
    addEventListener("popstate", onChange);
  }

  // The value of `name` in the query, or null.
  get(name) {
    return new URLSearchParams(location.search).get(name);
  }

  // Writes what is not null or empty, and takes away what is; the history of the browser keeps one entry.
  set(values) {
    const url = new URL(location.href);
    for (const [name, value] of Object.entries(values)) {
      if (value === null || value === "") url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    if (url.href !== location.href) history.replaceState(history.state, "", url);
  }

  // {kind, id} that the fragment names, or null.
  get selection() {
    const [, kind, id] = NUMBERED.exec(location.hash) ?? [];
    return kind ? { kind, id: Number(id) } : null;
  }

  select(selection) {
    const url = new URL(location.href);
    url.hash = selection ? `#${selection.kind}-${selection.id}` : "";
    if (url.href !== location.href) history.replaceState(history.state, "", url);
  }
}
