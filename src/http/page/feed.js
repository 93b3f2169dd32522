// The live feed of events. It asks for what came since the last id it saw, in one request at a time.

import { serves, watch } from "./api.js";
import { h, put, rove, arrows, say } from "./dom.js";
import { clockTime, words } from "./format.js";
import { link } from "./parts.js";

const FEED = "/apis/v1/events";
const KEPT = 200;

let parts;
let events = [];
let last = 0;
let paused = false;

/** Puts the feed together inside its section, and begins. */
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
  if (served) watch(() => `${FEED}?since=${last}`, 2000, take);
}

function take(answer) {
  if (!answer.ok) {
    const gone = answer.status === 404;
    say(parts.note, gone ? "This scheduler serves no event feed." : events.length ? "" : answer.message);
    parts.pause.hidden = gone || !events.length;
    return;
  }
  say(parts.note, "");
  const fresh = lines(answer.body).filter((event) => !(event.id <= last));
  for (const event of fresh) if (Number.isFinite(event.id)) last = Math.max(last, event.id);
  events = [...events, ...fresh].slice(-KEPT);
  parts.pause.hidden = events.length === 0;
  if (!events.length) say(parts.note, "Nothing has happened yet.");
  if (fresh.length && !paused) draw();
}

/** Reads NDJSON or a JSON body with a list; a line that is cut off is left for the next time. */
function lines(body) {
  if (typeof body !== "string") return Array.isArray(body) ? body : body?.events ?? (body?.id === undefined ? [] : [body]);
  return body.split("\n").flatMap((line) => {
    try {
      return line.trim() ? [JSON.parse(line)] : [];
    } catch {
      return [];
    }
  });
}

function draw() {
  put(parts.list, [...events].reverse().map(entry));
  rove(parts.list, "a");
}

function entry(event) {
  const kind = String(event.kind ?? event.type ?? "event");
  const isGap = /gap|dropped/i.test(kind);
  const subject = event.pod ? h("a", { href: link("pods", event.pod), "data-key": `event ${event.id}` }, event.pod)
    : event.gang ? h("a", { href: link("gangs", event.gang), "data-key": `event ${event.id}` }, event.gang) : null;
  const node = typeof event.node === "string" && event.node ? [" → ", event.node] : null;
  const note = event.message ?? event.text ?? (event.code ? words(event.code) : isGap ? `${event.dropped ?? event.missed ?? "some"} were pushed out` : "");
  return h("li", { class: isGap ? "gap" : "" },
    h("time", { datetime: event.at ?? "" }, clockTime(event.at)),
    h("span", { class: "event-kind" }, words(kind).toLowerCase()), " ", subject, node,
    note && h("span", { class: "event-note" }, note));
}
