// The find box: suggests nodes that the page knows, and gangs and pending pods that the server finds; accepts any
// namespace/name.

import { read } from "./api.js";
import { h, put } from "./dom.js";
import { link } from "./parts.js";

const SHOWN = 8;
/** Pause after a keystroke before the server is asked, in milliseconds. */
const TYPING = 200;

let input;
let list;
let options = [];
let at = -1;
let known = () => [];
let typing = 0;
/** Gangs and pods of the last answers. */
let found = [];

/** Sets up the box. `names` returns `[kind, name]` pairs. */
export function start(form, names) {
  known = names;
  input = form.querySelector("input");
  list = form.querySelector("ul");
  input.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(look, TYPING);
    suggest();
  });
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

/** Asks for the gangs and the pending pods whose names begin as the text does. */
async function look() {
  const text = input.value.trim();
  if (!text) return;
  const [namespace, name] = text.includes("/") ? text.split("/", 2) : ["", text];
  const wanted = Object.entries({ namespace, name, limit: SHOWN, fields: "namespace,name" }).filter(([, value]) => value !== "");
  const ask = async (kind) => {
    const answer = await read(`/apis/v1/explain/${kind}?${new URLSearchParams(wanted)}`);
    return answer.ok ? (answer.body[kind] ?? []).map((one) => [kind, `${one.namespace}/${one.name}`]) : [];
  };
  const both = await Promise.all([ask("gangs"), ask("pods")]);
  if (text !== input.value.trim()) return;
  found = both.flat();
  suggest();
}

function* candidates() {
  yield* known();
  yield* found;
}

function suggest() {
  const text = input.value.trim().toLowerCase();
  const chosen = options[at]?.join(" ");
  const matching = [];
  if (text) {
    for (const [kind, name] of candidates()) {
      if (!name.toLowerCase().includes(text)) continue;
      matching.push([kind, name]);
      if (matching.length === SHOWN) break;
    }
    const typed = input.value.trim();
    if (/^[^/\s]+\/[^/\s]+$/.test(typed) && !matching.some(([, name]) => name === typed)) matching.push(["pods", typed]);
  }
  options = matching;
  at = matching.length ? Math.max(0, matching.findIndex((option) => option.join(" ") === chosen)) : -1;
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
