// The live feed of events. Requests the events since the last id, one request at a time. What happened again to the
// same pod, or to pods whose names differ in their last part, is one line with a count.

import { serves, watch } from "./api.js";
import { arrows, h, put, rove, say, whenChanged } from "./dom.js";
import { clockTime, count, plural, words } from "./format.js";
import { link } from "./parts.js";

const FEED = "/apis/v1/events";
/** Events that are kept, and lines that are shown of them. */
const KEPT = 2000;
const SHOWN = 100;
const PAGE = 2000;

let parts;
/** Events by id, the newest last; marks have keys of their own. */
let events = new Map();
let marks = 0;
let last = 0;
let paused = false;
let feed = null;

/** Sets up the feed inside its section, and starts it. */
export function start(section) {
  const at = (name) => section.querySelector(`[data-part=${name}]`);
  parts = { list: at("list"), pause: at("pause"), note: at("note"), kind: at("kind"), pod: at("pod") };
  parts.pause.addEventListener("click", () => {
    paused = !paused;
    say(parts.pause, paused ? "Go on" : "Pause");
    parts.pause.setAttribute("aria-pressed", String(paused));
    if (!paused) draw();
  });
  parts.kind.addEventListener("change", draw);
  parts.pod.addEventListener("input", draw);
  arrows(parts.list, "a, button");
  begin(section);
}

async function begin(section) {
  const served = await serves(FEED);
  section.hidden = !served;
  section.parentElement.classList.toggle("no-feed", !served);
  if (served) feed = watch(() => `${FEED}?since=${last}&limit=${PAGE}`, 2000, take);
}

function take(answer) {
  if (!answer.ok) {
    const gone = answer.status === 404;
    say(parts.note, gone ? "This scheduler serves no event feed." : events.size ? "" : answer.message);
    parts.pause.hidden = gone || !events.size;
    return;
  }
  const fresh = lines(answer.body);
  add(fresh);
  // After a full page there is more.
  if (fresh.length >= PAGE) queueMicrotask(() => feed.again());
  say(parts.note, events.size ? "" : "Nothing has happened yet.");
  parts.pause.hidden = events.size === 0;
  if (fresh.length && !paused) draw();
}

/** Parses NDJSON. An incomplete line is skipped; it comes again with the next response. */
function lines(body) {
  if (typeof body !== "string") return body && typeof body === "object" ? [body] : [];
  return body.split("\n").flatMap((line) => {
    try {
      return line.trim() ? [JSON.parse(line)] : [];
    } catch {
      return [];
    }
  });
}

/** Adds events to the list. A repeated event replaces its earlier entry. */
function add(fresh) {
  for (const event of fresh) {
    if (event.kind === "Restarted") {
      events = new Map();
      last = event.to ?? 0;
    }
    if (Number.isFinite(event.id)) {
      if (event.id <= last) continue;
      last = event.id;
    }
    if (event.kind === "Gap" && Number.isFinite(event.to)) last = Math.max(last, event.to);
    if (event.replaces !== undefined) events.delete(event.replaces);
    events.set(event.id ?? `mark ${(marks += 1)}`, event);
  }
  for (const id of events.keys()) {
    if (events.size <= KEPT) break;
    events.delete(id);
  }
}

const subject = (event) => event.pod ?? event.gang ?? event.object ?? "";

/** Returns what the pods of one controller have in common: the name without its last part, which a controller adds. */
const stem = (name) => (name.lastIndexOf("-") > name.indexOf("/") + 1 ? name.slice(0, name.lastIndexOf("-") + 1) : name);

/** Folds the events that the filters admit into lines, the newest first: what is shown, how often, and of whom. */
function folded() {
  const kind = parts.kind.value;
  const text = parts.pod.value.trim().toLowerCase();
  const lines = new Map();
  for (const [id, event] of [...events].reverse()) {
    if (MARKS[event.kind]) {
      if (!kind && !text) lines.set(id, { event, names: new Set(), times: 1 });
      continue;
    }
    const name = subject(event);
    if ((kind && event.kind !== kind) || (text && !name.toLowerCase().includes(text))) continue;
    // Whoever looks for one controller's pods wants to see them one by one.
    const whole = !event.pod || (text && stem(name).toLowerCase().endsWith(text));
    const key = `${event.kind} ${whole ? name : stem(name)}`;
    const line = lines.get(key) ?? { event, names: new Set(), times: 0 };
    line.names.add(name);
    line.times += event.count ?? 1;
    lines.set(key, line);
  }
  return [...lines.values()];
}

/** Offers the kinds that were seen. */
function kinds() {
  const seen = [...new Set([...events.values()].map((event) => event.kind).filter((kind) => kind && !MARKS[kind]))].sort();
  const wanted = parts.kind.value;
  if (wanted && !seen.includes(wanted)) seen.push(wanted);
  whenChanged(parts.kind, seen, () => parts.kind.replaceChildren(
    h("option", { value: "", selected: !wanted }, "all kinds"), ...seen.map((kind) => h("option", { value: kind, selected: kind === wanted }, words(kind)))));
}

function draw() {
  kinds();
  const lines = folded();
  const left = lines.length - SHOWN;
  put(parts.list, lines.slice(0, SHOWN).map(entry), left > 0 && h("li", { class: "gap" }, `${plural(left, "older line")} left out`), !lines.length && events.size > 0 && h("li", { class: "gap" }, "nothing that happened is like that"));
  rove(parts.list, "a, button");
}

const MARKS = {
  // Without a number: some ids in a gap belong to repeated events, which are shown further on.
  Gap: () => "events were pushed out before they were read",
  Restarted: () => "the scheduler began anew; what happened meanwhile is not known here",
  NotRecorded: () => "not recorded for a while",
};

function entry({ event, names, times }) {
  const kind = String(event.kind ?? "event");
  const told = MARKS[kind];
  if (told) return h("li", { class: "gap" }, told(event));
  const codes = (event.codes ?? []).map(words);
  const causes = codes.length ? codes[0] + (codes.length > 1 ? ` and ${codes.length - 1} more` : "") : "";
  const note = [times > 1 && `${count(times)} times`, causes].filter(Boolean).join(" · ");
  const single = names.size === 1;
  return h("li", { title: event.message, "data-kind": kind, "data-times": times },
    h("time", { datetime: event.at ?? "" }, clockTime(event.at)),
    h("i", { class: `sign ${SIGNS[kind] ?? "calm"}`, "aria-hidden": "true" }, "●"),
    h("div", {}, h("span", { class: "event-kind" }, words(kind)), " ", single ? one(event) : several(event, names.size),
      single && event.node && [" → ", event.node], single && event.by && [" by ", event.by],
      note && h("span", { class: "event-note" }, note)));
}

function one(event) {
  const name = subject(event);
  if (!event.pod && !event.gang && name) return name;
  return name ? h("a", { href: link(event.pod ? "pods" : "gangs", name), "data-key": `event ${event.kind} ${name}` }, name) : null;
}

/** Creates the button that shows the pods of a line one by one. */
function several(event, n) {
  const common = stem(subject(event));
  const narrow = () => {
    parts.pod.value = common;
    draw();
    parts.pod.focus();
  };
  return h("button", { type: "button", class: "event-pods", "data-key": `event ${event.kind} ${common}`, title: "Show these one by one", onclick: narrow }, `${common}… `, h("span", { class: "quiet" }, plural(n, "pod")));
}

const SIGNS = { Refused: "refused", GangRefused: "refused", Evicted: "refused", TakenBack: "refused", Unreadable: "refused", Gated: "gated", GangWaiting: "gated", GangReleased: "gated", Released: "gated", Placed: "good", Bound: "good", GangPlaced: "good" };
