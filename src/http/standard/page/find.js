// The find box: suggests nodes, pending pods and gangs, and accepts any namespace/name.

import { h, put } from "./dom.js";
import { link } from "./parts.js";

const SHOWN = 8;

let input;
let list;
let options = [];
let at = -1;
let known = () => [];

/** Sets up the box. `names` returns `[kind, name]` pairs. */
export function start(form, names) {
  known = names;
  input = form.querySelector("input");
  list = form.querySelector("ul");
  input.addEventListener("input", suggest);
  input.addEventListener("focus", suggest);
  input.addEventListener("blur", () => setTimeout(close, 150));
  input.addEventListener("keydown", keys);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go(options[Math.max(0, at)]);
  });
}

/** Focuses the box. */
export function focus() {
  input.focus();
  input.select();
}

function suggest() {
  const text = input.value.trim().toLowerCase();
  const found = [];
  if (text) {
    for (const [kind, name] of known()) {
      if (!name.toLowerCase().includes(text)) continue;
      found.push([kind, name]);
      if (found.length === SHOWN) break;
    }
    const typed = input.value.trim();
    if (/^[^/\s]+\/[^/\s]+$/.test(typed) && !found.some(([, name]) => name === typed)) found.push(["pods", typed]);
  }
  options = found;
  at = found.length ? 0 : -1;
  draw(text);
}

function draw(text) {
  const titles = { pods: "pod", nodes: "node", gangs: "gang" };
  put(list, options.length || !text ? options.map(([kind, name], index) => h("li", {
    id: `find-${index}`, role: "option", "aria-selected": String(index === at),
    onpointerdown: (event) => { event.preventDefault(); go([kind, name]); },
  }, h("span", { class: "quiet" }, titles[kind]), " ", name)) : h("li", { role: "option", "aria-disabled": "true" }, "nothing has such a name; a pod is found as namespace/name"));
  list.hidden = !text;
  input.setAttribute("aria-expanded", String(!list.hidden));
  if (at >= 0) input.setAttribute("aria-activedescendant", `find-${at}`);
  else input.removeAttribute("aria-activedescendant");
}

function keys(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && options.length) {
    at = (at + step + options.length) % options.length;
    draw(input.value.trim());
    event.preventDefault();
  } else if (event.key === "Escape") {
    event.stopPropagation();
    input.value = "";
    close();
    input.blur();
  }
}

function close() {
  list.hidden = true;
  input.setAttribute("aria-expanded", "false");
}

function go(option) {
  if (!option) return;
  location.hash = link(...option);
  input.value = "";
  close();
}
