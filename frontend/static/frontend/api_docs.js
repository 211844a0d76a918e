// Swagger's field for the body of a request has no name.
new MutationObserver(() => {
  for (const body of document.querySelectorAll("textarea:not([aria-label])")) body.setAttribute("aria-label", "Body of the request");
}).observe(document.getElementById("swagger-ui"), { childList: true, subtree: true });
