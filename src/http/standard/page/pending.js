// The pending pods in groups: one line per controller, or per shape for pods without one. The server groups, filters,
// sorts and cuts pages, so that the page holds no more than it shows.

import { watch } from "./api.js";
import { arrows, h, put, rove, say, whenChanged } from "./dom.js";
import { count, plural, requested, words } from "./format.js";
import { chip, clock, failure, link, outlookTone, sign } from "./parts.js";

const PODS = "/apis/v1/explain/pods";
const SUMMARY = "/apis/v1/summary/pending";
const EVERY = 2500;
/** Groups on the first page, pods of an opened group, and how many more a press adds. */
const GROUPS = 50;
const MEMBERS = 20;
const MORE = 50;
/** Pause after a keystroke before the filter is sent. */
const TYPING = 250;
const FIELDS = "namespace,name,createdAt,priority,stage,verdict,keyReason,outlook";

let parts;
let rows = [];
let groups = 0;
let found = 0;
let limit = GROUPS;
let watched;
let typing = 0;
let chosen = "";
let reasons = new Map();
let byCode = { rows: [], totalPending: 0 };
let tell = () => {};
/** Groups that are open, by key: their pods, how many are shown, and what polls them. */
const open = new Map();

/** Sets up the list inside its section. Calls `changed` when the number of pending pods may have changed. */
export function start(section, changed) {
  const at = (name) => section.querySelector(`[data-part=${name}]`);
  parts = { list: at("list"), filter: at("filter"), summary: at("summary"), reason: at("reason"), sort: at("sort") };
  tell = changed;
  parts.filter.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(ask, TYPING);
  });
  parts.filter.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown") return;
    parts.list.querySelector("[data-roving]")?.focus();
    event.preventDefault();
  });
  parts.reason.addEventListener("change", ask);
  parts.sort.addEventListener("change", ask);
  arrows(parts.list, "summary, a, button");
  watched = watch(() => `${SUMMARY}?${query({ by: "ownerOrShape", limit, sort: parts.sort.value })}`, EVERY, update);
  watch(`${SUMMARY}?by=code`, EVERY, counted);
}

/** Returns the parameters of a request: those given, the filters that are set, and what stands above these. Empty ones
 * are left out. */
function query(given, above = {}) {
  const text = parts.filter.value.trim();
  const [namespace, name] = text.includes("/") ? text.split("/", 2) : ["", text];
  const all = { ...given, namespace, name, reason: parts.reason.value, ...above };
  return new URLSearchParams(Object.entries(all).filter(([, value]) => value !== "" && value !== undefined)).toString();
}

/** Asks anew, from the first page, after a filter or the order has changed. */
function ask() {
  limit = GROUPS;
  watched.restart();
  for (const one of open.values()) one.watched.restart();
}

/** Stores the registry of reasons, which supplies tooltips. */
export function explainReasons(list) {
  reasons = new Map(list.map((one) => [one.code, one]));
}

/** Returns the number of pending pods. */
export const size = () => byCode.totalPending;

/** Returns the most common key reason with its number of pods, or null. */
export function commonest() {
  const most = byCode.rows[0];
  return most ? { code: most.code, n: most.pods } : null;
}

function counted(answer) {
  if (!answer.ok) return;
  byCode = { rows: answer.body.rows ?? [], totalPending: answer.body.totalPending ?? 0 };
  const wanted = parts.reason.value;
  const codes = byCode.rows.map((row) => [row.code, row.pods]);
  if (wanted && !codes.some(([code]) => code === wanted)) codes.push([wanted, 0]);
  whenChanged(parts.reason, codes, () => {
    const option = (code, text) => h("option", { value: code, selected: code === wanted }, text);
    parts.reason.replaceChildren(option("", "any reason"), ...codes.map(([code, n]) => option(code, `${words(code)} (${count(n)})`)));
  });
  tell();
}

function update(answer) {
  if (!answer.ok) {
    if (answer.status === 400 || answer.status === 404 || !rows.length) put(parts.list, failure(answer, "list of pending pods"));
    return;
  }
  rows = answer.body.rows ?? [];
  groups = answer.body.count ?? rows.length;
  found = answer.body.totalPending ?? 0;
  const there = new Set(rows.map(keyOf));
  for (const key of open.keys()) if (!there.has(key)) close(key);
  draw();
}

/** Returns what tells a group from the others: its controller, or its first pod by name. */
const keyOf = (row) => (row.owner ? `${row.namespace} ${row.owner}` : `${row.namespace} like ${row.example}`);

/** Returns the request for the pods of a group. A pod that cannot be read has no shape to be like. */
function members(row, limit) {
  const alike = row.keyReason === "Unreadable" && !row.owner ? { namespace: row.namespace, reason: "Unreadable" } : { like: row.example };
  return `${PODS}?${query({ limit, fields: FIELDS, sort: parts.sort.value }, alike)}`;
}

function show(key, row) {
  if (open.has(key)) return;
  const one = { limit: MEMBERS, pods: null, count: 0, row };
  one.watched = watch(() => members(one.row, one.limit), EVERY, (answer) => {
    if (!answer.ok) return;
    [one.pods, one.count] = [answer.body.pods ?? [], answer.body.count ?? 0];
    draw();
  });
  open.set(key, one);
  draw();
}

function close(key) {
  open.get(key)?.watched.stop();
  open.delete(key);
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

const isFiltered = () => Boolean(parts.filter.value.trim() || parts.reason.value);

function draw() {
  const told = isFiltered() ? `${count(found)} of ${plural(size(), "pod")}` : found === 0 ? "nothing waits" : plural(found, "pod");
  say(parts.summary, `${told}${found ? ` in ${plural(groups, "group")}` : ""}`);
  for (const row of rows) if (open.has(keyOf(row))) open.get(keyOf(row)).row = row;
  const opened = [...open].map(([key, one]) => [key, one.pods, one.count]);
  whenChanged(parts.list, [rows, groups, opened, isFiltered()], () => {
    const empty = isFiltered() ? "No pod that waits is like that." : "Every pod has its node.";
    put(parts.list, rows.length ? [titles(), rows.map(group), rest()] : h("p", { class: "empty" }, empty));
    rove(parts.list, "summary, a, button");
    choose(chosen);
  });
}

const rest = () => rows.length < groups && h("button", { type: "button", "data-key": "more groups", onclick: () => { limit += MORE; watched.restart(); } }, `${count(Math.min(MORE, groups - rows.length))} more of ${plural(groups - rows.length, "group")}`);

const COLUMNS = ["Made by", "Pods", "Namespace", "Oldest", "Priority", "Each requests", "Why", "Outlook"];
const titles = () => h("div", { class: "pending-row pending-titles", "aria-hidden": "true" }, COLUMNS.map((title) => h("span", {}, title)));

function group(row) {
  const key = keyOf(row);
  if (row.pods === 1 && !row.owner) return alone(row);
  const one = open.get(key);
  const details = h("details", { open: Boolean(one), class: "pending-group", "data-group": key, "data-code": row.keyReason },
    h("summary", { class: "pending-row", "data-key": `group ${key}`, title: reasons.get(row.keyReason)?.meaning }, cells(row, row.owner ? named(row.owner) : row.oldest ? [row.example.split("/")[1], h("span", { class: "quiet" }, " and alike")] : "Pods that cannot be read")),
    one && pods(key, one, row));
  details.addEventListener("toggle", () => {
    if (details.open) show(key, row);
    else close(key);
  });
  return details;
}

/** Draws a pod that nothing is like as one line that leads to it. */
function alone(row) {
  return h("div", { class: "pending-group", "data-code": row.keyReason },
    h("a", { class: "pending-row", href: link("pods", row.example), "data-key": `pending ${row.example}`, "data-pod": row.example, title: reasons.get(row.keyReason)?.meaning }, cells(row, row.example.split("/")[1])));
}

const named = (owner) => {
  const [kind, name] = owner.split("/");
  return [name, " ", h("span", { class: "quiet" }, kind)];
};

function cells(row, name) {
  const cell = (title, content, kind = "") => h("span", { class: `cell ${kind}` }, h("span", { class: "cell-title" }, title, " "), content);
  const priority = row.minPriority === row.maxPriority ? count(row.maxPriority ?? 0) : `${count(row.minPriority)} to ${count(row.maxPriority)}`;
  return [
    h("span", { class: "cell group-name" }, name),
    h("span", { class: "cell n group-count" }, count(row.pods), h("span", { class: "hidden" }, row.pods === 1 ? " pod" : " pods")),
    cell("in", row.namespace ?? ""),
    cell("for", row.oldest ? clock(row.oldest) : "–", "n"),
    cell("priority", priority, "n"),
    cell("requests", row.requests ? requested(row.requests) : row.oldest ? "differs" : "–", "asked"),
    h("span", { class: "cell" }, row.keyReason ? words(row.keyReason) : "Not decided yet"),
    h("span", { class: "cell" }, row.outlook ? chip(words(row.outlook), outlookTone(row.outlook)) : ""),
  ];
}

function pods(key, one, row) {
  if (!one.pods) return h("p", { class: "quiet pending-wait" }, "asking …");
  const left = one.count - one.pods.length;
  const more = () => {
    one.limit += MORE;
    one.watched.restart();
  };
  return h("ul", {},
    row.owner && h("li", {}, h("a", { class: "group-link", href: link("owners", `${row.namespace}/${row.owner}`), "data-key": `owner ${key}` }, `All of ${row.owner.replace("/", " ")}`)),
    one.pods.map((pod) => member(pod, row)),
    left > 0 && h("li", {}, h("button", { type: "button", "data-key": `more ${key}`, onclick: more }, `${count(Math.min(MORE, left))} more of ${count(left)}`)));
}

/** Draws a pod of a group, with what differs from its group. */
function member(pod, row) {
  const name = `${pod.namespace}/${pod.name}`;
  const note = [pod.keyReason !== row.keyReason && pod.keyReason && words(pod.keyReason), pod.stage].filter(Boolean).join(" · ");
  return h("li", {}, h("a", { href: link("pods", name), "data-key": `pending ${name}`, "data-pod": name },
    sign(pod.verdict), h("span", { class: "row-name" }, pod.name),
    h("span", { class: "row-note" }, note, pod.createdAt && [" ", clock(pod.createdAt)])));
}
