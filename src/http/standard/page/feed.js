// The live feed of events. Requests the events since the last id, one request at a time.

import { serves, watch } from "./api.js";
import { h, put, rove, arrows, say } from "./dom.js";
import { clockTime, count, words } from "./format.js";
import { link } from "./parts.js";

const FEED = "/apis/v1/events";
const KEPT = 200;
const PAGE = 2000;

let parts;
let events = [];
let last = 0;
let paused = false;
let feed = null;

/** Sets up the feed inside its section, and starts it. */
export function start(section) {
  const at = (name) => section.querySelector(`[data-part=${name}]`);
  parts = { list: at("list"), pause: at("pause"), note: at("note") };
  parts.pause.addEventListener("click", () => {
    paused = !paused;
    say(parts.pause, paused ? "Go on" : "Pause");
    parts.pause.setAttribute("aria-pressed", String(paused));
    if (!paused) draw();
  });
  arrows(parts.list, "a");
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
    say(parts.note, gone ? "This scheduler serves no event feed." : events.length ? "" : answer.message);
    parts.pause.hidden = gone || !events.length;
    return;
  }
  const fresh = lines(answer.body);
  add(fresh);
  // After a full page there is more: fetch it first, then draw once.
  if (fresh.length >= PAGE) return queueMicrotask(() => feed.again());
  say(parts.note, events.length ? "" : "Nothing has happened yet.");
  parts.pause.hidden = events.length === 0;
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
    if (event.kind === "Restarted") [events, last] = [[], event.to ?? 0];
    if (Number.isFinite(event.id)) {
      if (event.id <= last) continue;
      last = event.id;
    }
    if (event.kind === "Gap" && Number.isFinite(event.to)) last = Math.max(last, event.to);
    if (event.replaces !== undefined) events = events.filter((one) => one.id !== event.replaces);
    events.push(event);
  }
  events = events.slice(-KEPT);
}

function draw() {
  put(parts.list, [...events].reverse().map(entry));
  rove(parts.list, "a");
}

const MARKS = {
  // Without a number: some ids in a gap belong to repeated events, which are shown further on.
  Gap: () => "events were pushed out before they were read",
  Restarted: () => "the scheduler began anew; what happened meanwhile is not known here",
  NotRecorded: () => "not recorded for a while",
};

function entry(event) {
  const kind = String(event.kind ?? "event");
  const told = MARKS[kind];
  if (told) return h("li", { class: "gap" }, told(event));
  const key = `event ${event.id}`;
  const subject = event.pod ? h("a", { href: link("pods", event.pod), "data-key": key }, event.pod)
    : event.gang ? h("a", { href: link("gangs", event.gang), "data-key": key }, event.gang) : null;
  const codes = (event.codes ?? []).map(words);
  const causes = codes.length ? codes[0] + (codes.length > 1 ? ` and ${codes.length - 1} more` : "") : "";
  const note = [event.count > 1 && `${count(event.count)} times`, causes].filter(Boolean).join(" · ");
  return h("li", { title: event.message },
    h("time", { datetime: event.at ?? "" }, clockTime(event.at)),
    h("i", { class: `sign ${SIGNS[kind] ?? "calm"}`, "aria-hidden": "true" }, "●"),
    h("div", {}, h("span", { class: "event-kind" }, words(kind)), " ", subject,
      event.node && [" → ", event.node], event.by && [" by ", event.by],
      note && h("span", { class: "event-note" }, note)));
}

const SIGNS = { Refused: "refused", GangRefused: "refused", Evicted: "refused", TakenBack: "refused", Unreadable: "refused", Gated: "gated", GangWaiting: "gated", GangReleased: "gated", Released: "gated", Placed: "good", Bound: "good", GangPlaced: "good" };
