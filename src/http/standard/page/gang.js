// View of a gang: its quorum, its members by set with their times, and what keeps the rest from being placed.

import { path, watch, watchServed } from "./api.js";
import { deadlock, gangLink, INTERFERENCE } from "./deadlock.js";
import { h, put, whenChanged } from "./dom.js";
import { amount, count } from "./format.js";
import { fixes } from "./fixes.js";
import { nodeGroups, shortfall, who } from "./groups.js";
import { chip, clock, facts, failure, head, nodeLink, podLink, section, source, tone } from "./parts.js";

/** The sets in the order that a member passes them, with their meaning. A member is in exactly one. */
const SETS = [
  ["gated", "held before the queue"],
  ["pending", "without a place"],
  ["waiting", "has a place, waits for the others"],
  ["permitted", "on the way to its node"],
  ["bound", "on its node"],
  ["finished", "ended"],
];
const LONGEST = 100;

/** Draws the counts of a gang as a bar with a mark at its quorum, and as text. */
export function quorum(counts, min) {
  const all = Math.max(counts.created ?? 0, min, 1);
  const given = SETS.map(([name]) => [name, counts[name] ?? 0]).filter(([, n]) => n > 0).reverse();
  const text = [...given.map(([name, n]) => `${count(n)} ${name}`), `${count(min)} make a quorum`].join(", ");
  return h("div", { class: "quorum" },
    h("div", { class: "quorum-bar", role: "img", "aria-label": text },
      given.map(([name, n]) => h("i", { class: `set-${name}`, style: { "inline-size": `${(n / all) * 100}%` } })),
      h("b", { style: { "inset-inline-start": `${(min / all) * 100}%` } })),
    h("p", { class: "quiet" }, text));
}

/** Shows the gang `namespace/name` in `view`. Returns a function that ends the view. */
export function show(view, name) {
  const explain = path("apis", "v1", "explain", "gangs", name);
  const body = h("div");
  const mending = h("div");
  put(view, body, mending);
  let mend = null;
  let seen = null;
  let circle = null;
  const draw = () => whenChanged(body, [seen, circle], () => put(body, seen?.state ? gang(seen, explain, circle) : [head("gang", name), failure(seen, "gang")]));
  const contested = watchServed(INTERFERENCE, INTERFERENCE, 4000, (answer) => {
    if (!answer.ok) return;
    const { edges = [], cycles = [] } = answer.body;
    const own = cycles.find((cycle) => cycle.gangs.includes(name));
    circle = own ? { cycle: own, edges } : null;
    if (seen) draw();
  });
  const watched = watch(explain, 2000, (answer) => {
    if (!answer.ok && body.childElementCount && answer.status !== 404) return;
    const { generatedAt, snapshotGeneration, costMicros, ...meta } = answer.body?.meta ?? {};
    seen = answer.ok ? { ...answer.body, meta } : answer;
    draw();
    mending.hidden = !answer.ok || ["Running", "Finished", "Placed", "Empty"].includes(answer.body.state);
    if (!mending.hidden) mend ??= fixes(mending, "gangs", explain);
  });
  return () => {
    watched.stop();
    contested.stop();
    mend?.();
  };
}

function gang(one, explain, circle) {
  const { counts = {}, verdict = {}, nextRetry = {}, rootCause, lastAttempt, held = {} } = one;
  return [
    head("gang", `${one.namespace}/${one.name}`, circle && chip("in a deadlock", "bad"), chip(one.state, tone(one.state)), chip(one.mode), chip(`declared as ${one.dialect}`)),
    circle && h("p", { class: "deadlock" }, deadlock(circle.cycle, circle.edges)),
    h("p", { class: "lead" }, verdict.message ? sentence(verdict.message) : `Gang ${one.state}`),
    verdict.remedy && h("p", { class: "remedy" }, verdict.remedy, " ", verdict.resolver && chip(who(verdict.resolver))),
    section("Quorum", quorum(counts, counts.min ?? 0), counts.placeable !== undefined && counts.placeable !== null &&
      h("p", {}, `The last attempt had a place for ${count(counts.placeable)} of the ${count(counts.wanted ?? counts.min)} it needs.`)),
    section("Members", h("div", { class: "sets" }, sets(one.members ?? []))),
    rootCause && section("What keeps the rest", rest(rootCause, verdict.message ?? "")),
    section("Attempts", facts([
      ["attempts", count(one.attempts ?? 0)],
      ["waits that ran out", one.timeouts ? count(one.timeouts) : null],
      ["last attempt", lastAttempt?.at && [clock(lastAttempt.at), ` ago: ${lastAttempt.outcome}`]],
      ["next try", nextRetry.text],
      ["at the latest", nextRetry.atTheLatest && ["in ", clock(nextRetry.atTheLatest, "until")]],
      ["its wait ends", nextRetry.waitEnds && ["in ", clock(nextRetry.waitEnds, "until")]],
      ["held meanwhile", Object.entries(held.amounts ?? {}).map(([name, n]) => `${amount(name, n)}${name === "cpu" ? "" : ` ${name}`}`).join(", ")],
      ["tried at once after", nextRetry.wakesOn?.length > 0 && h("ul", { class: "tags" }, nextRetry.wakesOn.map((event) => h("li", {}, event)))],
      ["together with", (one.group ?? []).length > 0 && one.group.flatMap((other, at) => [at ? ", " : "", other.gang ?? other.name ? gangLink(other.gang ?? other.name) : gangLink(String(other))])],
    ])),
    one.modeNote && h("p", { class: "quiet" }, sentence(one.modeNote)),
    (one.warnings ?? []).map((text) => h("p", { class: "error" }, typeof text === "string" ? text : text.message ?? "")),
    source(explain),
  ];
}

const sentence = (text) => {
  const full = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(full) ? full : `${full}.`;
};

/** Returns the set of a member, consistent with the counts of the gang. */
const setOf = ({ state, stage }) => ({
  Gated: "gated", Queued: "pending", Failed: "pending", Evaluated: "pending", NotEvaluated: "pending",
  Waiting: "waiting", Permitted: "permitted", Bound: "bound", Finished: "finished",
})[state] ?? String(stage ?? state).toLowerCase();

function sets(members) {
  return SETS.map(([name, meaning]) => {
    const own = members.filter((member) => setOf(member) === name);
    if (!own.length) return null;
    return h("section", { class: `set set-of-${name}`, "data-set": name },
      h("h4", {}, h("i", { class: `dot set-${name}`, "aria-hidden": "true" }), `${name} `, h("span", { class: "reason-count" }, count(own.length)), h("span", { class: "quiet" }, ` ${meaning}`)),
      h("ul", {}, own.slice(0, LONGEST).map(member)),
      own.length > LONGEST && h("p", { class: "quiet" }, `and ${count(own.length - LONGEST)} more`));
  });
}

function member(one) {
  const inner = [
    podLink(one.pod),
    one.node && h("span", {}, "on ", nodeLink(one.node)),
    one.state !== one.stage && setOf(one) === "pending" && h("span", { class: "quiet" }, { Failed: "no node took it", Evaluated: "would have been placed", NotEvaluated: "not asked in the last attempt", Queued: "not tried yet" }[one.state] ?? ""),
    setOf(one) === "permitted" && one.stage && h("span", { class: "quiet" }, one.stage),
    one.since && h("span", { class: "quiet" }, "since ", clock(one.since)),
    one.deadline && h("span", { class: "deadline" }, "gives up in ", clock(one.deadline, "until")),
  ];
  return h("li", {}, inner);
}

function rest(cause, told) {
  const isTold = cause.message && told.includes(cause.message);
  return [
    cause.pod && h("p", {}, podLink(cause.pod), isTold ? " stands for the members without a place." : `: ${cause.message}`),
    (cause.lacking ?? []).map(shortfall),
    nodeGroups(cause),
  ];
}
