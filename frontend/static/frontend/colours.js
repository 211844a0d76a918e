// What the colours of the style sheet are here and now: a canvas knows neither variables nor schemes.

// {name: colour} of variables such as "--edge", as they are beside `node`.
export function coloursAt(node, names) {
  const probe = document.createElement("span");
  node.parentNode.append(probe);
  const style = getComputedStyle(probe);
  const colours = names.map((name) => {
    probe.style.color = `var(${name})`;
    return [name, style.color];
  });
  probe.remove();
  return Object.fromEntries(colours);
}
