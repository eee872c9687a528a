// --- elements ----------------------------------------------------------------------------------
// Nothing here parses HTML: what the process says is text, wherever it is put.

const $ = id => document.getElementById(id);

/** An element with attributes, listeners (`onclick`) and children. */
function el(name, attributes = {}, ...children) {
  const node = name.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/** Sets the text of an element, and touches nothing if it is the same. */
function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function mark(node, name, value) {
  if (value == null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/** Makes the children of an element be those of the items, in order; `make` gives {node, update}. */
function keyed(parent, items, key, make) {
  const before = parent.kept ?? new Map();
  const kept = parent.kept = new Map();
  if (!before.size) parent.replaceChildren();
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    const child = before.get(name) ?? make(item);
    kept.set(name, child);
    child.update(item);
    if (child.node === place) place = place.nextElementSibling;
    else parent.insertBefore(child.node, place);
  }
  for (const [name, child] of before) if (!kept.has(name)) child.node.remove();
}
