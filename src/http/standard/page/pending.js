// The pending pods, grouped by the reason that refused most nodes. A long group shows its first pods only.

import { arrows, h, put, rove, say, whenChanged } from "./dom.js";
import { count, plural, words } from "./format.js";
import { failure, link } from "./parts.js";

/** Initial rows per group: all in a small cluster, few where long groups would hide each other. */
const first = () => (pods.length > 200 ? 8 : 30);
const MORE = 200;

let parts;
let pods = [];
let total = 0;
let reasons = new Map();
let filter = "";
let chosen = "";
const limits = new Map();
const closed = new Set();

/** Sets up the list inside its section. */
export function start(section) {
  const at = (name) => section.querySelector(`[data-part=${name}]`);
  parts = { list: at("list"), filter: at("filter"), summary: at("summary") };
  parts.filter.addEventListener("input", () => {
    filter = parts.filter.value.trim().toLowerCase();
    draw();
  });
  parts.filter.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      parts.list.querySelector("[data-roving]")?.focus();
      event.preventDefault();
    }
  });
  arrows(parts.list, "summary, a, button");
}

/** Stores the registry of reasons, which supplies the groups' tooltips and remedies. */
export function explainReasons(list) {
  reasons = new Map(list.map((one) => [one.code, one]));
  draw();
}

/** Stores a response of `/apis/v1/explain/pods`. */
export function update(answer) {
  if (!answer.ok) {
    if (answer.status === 404 || !pods.length) put(parts.list, failure(answer, "list of pending pods"));
    return;
  }
  pods = answer.body.pods ?? [];
  total = answer.body.total ?? answer.body.count ?? pods.length;
  draw();
}

/** Returns all pending pods, as `namespace/name`. */
export const names = () => pods.map((pod) => `${pod.namespace}/${pod.name}`);

/** Returns the number of pending pods. */
export const size = () => total;

/** Returns the reason under which the API counts a pod; empty for a pod that was not decided yet. */
const keyReason = (pod) => pod.keyReason || pod.reasons?.[0] || "";

/** Returns the most common key reason with its number of pods, and a remedy if it is one for all of them; or null. */
export function commonest() {
  const counts = new Map();
  for (const pod of pods) counts.set(keyReason(pod), (counts.get(keyReason(pod)) ?? 0) + 1);
  const [code, n] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [];
  const never = pods.some((pod) => keyReason(pod) === code && pod.outlook === "NeverFits");
  return code ? { code, n, remedy: never ? "" : reasons.get(code)?.remedy ?? "" } : null;
}

/** Marks the pod of the open view. */
export function choose(name) {
  chosen = name;
  for (const row of parts.list.querySelectorAll("a[data-pod]")) current(row);
}

function current(row) {
  if (row.dataset.pod === chosen) row.setAttribute("aria-current", "page");
  else row.removeAttribute("aria-current");
}

function grouped() {
  const groups = new Map();
  for (const pod of pods) {
    if (filter && !`${pod.namespace}/${pod.name}`.toLowerCase().includes(filter)) continue;
    const code = keyReason(pod);
    if (!groups.has(code)) groups.set(code, []);
    groups.get(code).push(pod);
  }
  return [...groups].sort((a, b) => b[1].length - a[1].length || (a[0] < b[0] ? -1 : 1));
}

function draw() {
  const groups = grouped();
  const found = groups.reduce((sum, [, list]) => sum + list.length, 0);
  say(parts.summary, filter ? `${count(found)} of ${plural(total, "pod")}` : total === 0 ? "nothing waits" : plural(total, "pod"));
  const visible = groups.map(([code, list]) => [code, list.length, list.slice(0, limits.get(code) ?? first()).map((pod) => [pod.namespace, pod.name, pod.verdict, pod.reasons])]);
  whenChanged(parts.list, [visible, reasons.size, filter], () => {
    const empty = filter ? "No pod that waits has such a name." : "Every pod has its node.";
    put(parts.list, groups.length ? groups.map(([code, list]) => group(code, list)) : h("p", { class: "empty" }, empty));
    rove(parts.list, "summary, a, button");
    choose(chosen);
  });
}

function group(code, list) {
  const limit = limits.get(code) ?? first();
  const known = reasons.get(code);
  const rest = list.length - limit;
  const share = pods.length ? list.length / pods.length : 0;
  const details = h("details", { open: !closed.has(code), class: "pending-group", "data-code": code },
    h("summary", { "data-key": `reason ${code}`, title: known?.meaning },
      h("span", { class: "reason-name" }, code ? words(code) : "Not decided yet"),
      h("span", { class: "reason-count" }, count(list.length)),
      h("span", { class: "reason-bar", "aria-hidden": "true" }, h("i", { style: { "inline-size": `${Math.max(2, share * 100)}%` } }))),
    h("ul", {}, list.slice(0, limit).map(row),
      rest > 0 && h("li", {}, h("button", { type: "button", "data-key": `more ${code}`, onclick: () => more(code, limit) }, `${count(Math.min(MORE, rest))} more of ${count(rest)}`))));
  details.addEventListener("toggle", () => (details.open ? closed.delete(code) : closed.add(code)));
  return details;
}

function more(code, limit) {
  limits.set(code, limit + MORE);
  draw();
  // Focus the first new row, because the button has moved.
  parts.list.querySelectorAll(`[data-code="${CSS.escape(code)}"] a`)[limit]?.focus();
}

function row(pod) {
  const name = `${pod.namespace}/${pod.name}`;
  const others = (pod.reasons?.length ?? 0) - 1;
  const sign = { refused: "▲", quarantined: "■", gated: "◐" }[pod.verdict] ?? "○";
  return h("li", {}, h("a", { href: link("pods", name), "data-key": `pending ${name}`, "data-pod": name, title: pod.message },
    h("i", { class: `sign ${pod.verdict}`, "aria-hidden": "true" }, sign),
    h("span", { class: "row-name" }, h("span", { class: "quiet" }, `${pod.namespace}/`), pod.name),
    h("span", { class: "row-note" }, pod.verdict === "refused" ? (others > 0 ? `+${others}` : "") : pod.verdict,
      others > 0 && pod.verdict === "refused" && h("span", { class: "hidden" }, ` further ${others === 1 ? "cause" : "causes"}, refused`))));
}
