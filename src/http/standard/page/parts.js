// Elements that several views share: chips, live clocks, the source of a view, failures.

import { now } from "./api.js";
import { h, say } from "./dom.js";
import { span } from "./format.js";

/** Returns the link to a pod, node or gang in this page. Names of pods and gangs are `namespace/name`. */
export const link = (kind, name) => `#/${kind}/${name.split("/").map(encodeURIComponent).join("/")}`;

/** Creates a link to a pod's verdict. */
export const podLink = (name, attributes) => h("a", { href: link("pods", name), "data-key": `pod ${name}`, ...attributes }, name);

/** Creates a link to a node. */
export const nodeLink = (name) => h("a", { href: link("nodes", name), "data-key": `node ${name}`, "data-node": name }, name);

/** Creates a framed word. The tone sets colour and sign; the word alone has the full meaning. */
export function chip(text, tone = "plain") {
  const sign = { good: "●", bad: "▲", wait: "◐", plain: "" }[tone] ?? "";
  return h("span", { class: `chip ${tone}` }, sign && h("i", { "aria-hidden": "true" }, sign), text);
}

const TONES = {
  placed: "good", bound: "good", running: "good", finished: "good",
  refused: "bad", unschedulable: "bad", quarantined: "bad", failed: "bad", released: "bad",
  gated: "wait", waiting: "wait", permitted: "wait", partiallybound: "wait", queued: "wait",
};

/** Returns the tone of a verdict or state. */
export const tone = (state) => TONES[String(state).toLowerCase()] ?? "plain";

const OUTLOOKS = { FitsNow: "good", FitsAfterPreemption: "wait", NotNow: "wait", HeldBack: "wait", NeverFits: "bad" };

/** Returns the tone of an outlook. */
export const outlookTone = (code) => OUTLOOKS[code] ?? "plain";

/** Creates the mark of a verdict in a list. */
export const sign = (verdict) => h("i", { class: `sign ${verdict}`, "aria-hidden": "true" }, { refused: "▲", quarantined: "■", gated: "◐" }[verdict] ?? "○");

/** Creates a live clock: `since` counts up, `until` counts down. */
export function clock(at, kind = "since") {
  const time = h("time", { datetime: at, "data-clock": kind, title: new Date(at).toLocaleString() });
  turn(time);
  return time;
}

function turn(time) {
  const left = Date.parse(time.dateTime) - now();
  const counting = time.dataset.clock === "since" ? -left : left;
  const over = time.dataset.clock === "until" && left <= 0;
  say(time, over ? "now" : span(counting));
}

/** Updates all live clocks. */
export function turnClocks() {
  for (const time of document.querySelectorAll("time[data-clock]")) turn(time);
}

/** Creates the line that names the request behind a view, which anyone can repeat. */
export function source(path) {
  return h("p", { class: "source" }, "GET ", h("a", { href: path, target: "_blank", rel: "noopener", "data-key": `source ${path}` }, path));
}

/** Creates the message shown instead of a view that could not be read. */
export function failure(answer, what) {
  const { status, code, message } = answer;
  const absent = code === "PodDeleted" ? "This pod is gone" : `There is no such ${what}`;
  const title = { 0: "No answer", 404: absent, 429: "The scheduler is busy", 503: "The scheduler cannot answer now" }[status] ?? "This could not be read";
  return h("div", { class: "empty" }, h("strong", {}, title), `: ${message}`, code && [" ", h("span", { class: "quiet" }, `(${code})`)]);
}

/** Creates the head of a view: kind, name, state. */
export function head(kind, name, ...chips) {
  return h("header", { class: "view-head" },
    h("p", { class: "eyebrow" }, h("a", { href: "#/", "data-key": "back" }, "Overview"), h("span", { "aria-hidden": "true" }, " / "), kind),
    h("h2", { id: "view-title", tabindex: "-1" }, name),
    h("p", { class: "chips" }, chips));
}

/** Creates a section with a heading. */
export const section = (title, ...children) => h("section", { class: "part" }, h("h3", {}, title), children);

/** Creates a list of names and values. Pairs without a value are skipped. */
export function facts(pairs) {
  const given = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h("dl", { class: "facts" }, given.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Creates a bar of a share, with its text. */
export function meter(name, share, text) {
  const part = Math.max(0, Math.min(1, share));
  return h("div", { class: "meter" },
    h("span", { class: "meter-name" }, name),
    h("span", { class: "meter-bar", role: "img", "aria-label": `${name}: ${text}` },
      h("i", { class: share > 1 ? "over" : "", style: { "inline-size": `${part * 100}%` } })),
    h("span", { class: "meter-text", "aria-hidden": "true" }, text));
}
