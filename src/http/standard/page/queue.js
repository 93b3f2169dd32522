// View of the queue: what waits to be placed, in the order in which it will be taken, page by page.

import { h, put } from "./dom.js";
import { gangLink } from "./deadlock.js";
import { count, plural } from "./format.js";
import { pages } from "./pages.js";
import { clock, head, podLink } from "./parts.js";

const QUEUE = "/apis/v1/queue";
const STAGES = { active: "to be tried", backoff: "in backoff", unschedulable: "waiting for an event", gated: "held before the queue" };

const gangs = (names) => names.flatMap((name, at) => [at > 0 && ", ", gangLink(name, "unit")]);

const COLUMNS = [
  ["Unit", (unit) => (unit.group ? [gangs(unit.group.gangs ?? [unit.key]), h("span", { class: "quiet" }, ` ${plural(unit.pods.length, "pod")}`)] : podLink(unit.key))],
  ["Stage", (unit) => unit.stage],
  ["Place in it", (unit) => count(unit.position + 1), "n"],
  ["Priority", (unit) => count(unit.priority), "n"],
  ["Attempts", (unit) => count(unit.attempts), "n"],
  ["In the queue for", (unit) => clock(unit.queuedAt), "n"],
  ["Goes on", (unit) => (unit.backoffUntil ? ["in ", clock(unit.backoffUntil, "until")] : unit.wakesOn?.length ? h("span", { title: unit.wakesOn.join(", ") }, `after ${unit.wakesOn[0]}${unit.wakesOn.length > 1 ? ` or ${plural(unit.wakesOn.length - 1, "other event")}` : ""}`) : "")],
];

/** Shows the queue in `view`. Returns a function that ends the view. */
export function show(view) {
  const body = h("div");
  const stage = h("select", { "aria-label": "Show only units in this stage", onchange: () => listed.restart() },
    h("option", { value: "" }, "every stage"), Object.keys(STAGES).map((name) => h("option", { value: name }, name)));
  const title = head("units in the order of the queue", "Queue");
  put(view, title, h("p", { class: "filters part" }, stage), body);
  const listed = pages(body, {
    target: () => `${QUEUE}?fields=key,group,pods,stage,position,priority,attempts,queuedAt,backoffUntil,wakesOn${stage.value ? `&stage=${stage.value}` : ""}`,
    array: "units",
    columns: COLUMNS,
    what: "units of the queue",
    head: ({ counts = {} }) => h("p", { class: "counts" }, counted(counts)),
  });
  return listed.stop;
}

function counted(counts) {
  const given = Object.entries(STAGES).filter(([name]) => counts[name] > 0).map(([name, meaning]) => `${count(counts[name])} ${meaning}`);
  if (counts.inFlight) given.push(`${count(counts.inFlight)} placed, not confirmed yet`);
  return given.length ? `${given.join(", ")}.` : "Nothing waits.";
}
