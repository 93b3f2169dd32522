// Creates elements. Text from the cluster is inserted as text nodes only, so it cannot become markup.

/** Creates an element with attributes, handlers (`onclick`) and children (texts, elements, lists; null is skipped). */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, set] of Object.entries(value)) element.style.setProperty(key, set);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...flat(children));
  return element;
}

/** Creates an element of a drawing with attributes and children. */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/** Replaces the content of an element. The focus stays on the same `data-key`, or in its place when that is gone. */
export function put(parent, ...children) {
  const keyed = () => [...parent.querySelectorAll("[data-key]")];
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const at = focused === undefined ? -1 : keyed().indexOf(document.activeElement);
  parent.replaceChildren(...flat(children));
  if (focused === undefined) return;
  const there = keyed();
  const one = there.find((e) => e.dataset.key === focused) ?? there[Math.min(at, there.length - 1)];
  one?.focus({ preventScroll: true });
}

/** Calls `draw` only when `value` differs from that of the last call for the same element. */
const drawn = new WeakMap();
export function whenChanged(element, value, draw) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (drawn.get(element) === text) return;
  drawn.set(element, text);
  draw();
}

/** Sets a text if it differs. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Lets arrow keys move over the visible `selector` elements of a container. One of them is in the tab order. */
export function arrows(container, selector) {
  const all = () => [...container.querySelectorAll(selector)].filter((e) => e.checkVisibility());
  container.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const items = all();
    const at = items.indexOf(document.activeElement);
    if (at < 0) return;
    event.preventDefault();
    items[Math.max(0, Math.min(items.length - 1, at + step))].focus();
  });
  container.addEventListener("focusin", (event) => {
    if (event.target.matches(selector)) rove(container, selector, event.target);
  });
}

/** Puts one element in the tab order: the given one, else the focused one, else the previous one, else the first. */
export function rove(container, selector, chosen) {
  const items = [...container.querySelectorAll(selector)];
  const one = chosen ?? items.find((e) => e === document.activeElement) ?? items.find((e) => e.tabIndex === 0 && e.dataset.roving) ?? items[0];
  for (const item of items) {
    item.tabIndex = item === one ? 0 : -1;
    if (item === one) item.dataset.roving = "1";
    else delete item.dataset.roving;
  }
}
