// Django's lists with a filter draw a magnifier as a span with a name. A name belongs to a picture, so it is said to be one.
addEventListener("load", () => {
  for (const magnifier of document.querySelectorAll(".search-label-icon[aria-label]")) magnifier.setAttribute("role", "img");
});
