// What would help a pod or gang: fixes that the scheduler tried on a copy of its state, the requirements that no node
// meets together, and whether the pod fits never or just not now. The server computes each on request, so the page
// polls seldom.

import { watchServed } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { amount, count, plural } from "./format.js";
import { who } from "./groups.js";
import { chip, nodeLink, outlookTone, podLink, section, source } from "./parts.js";
import { trial } from "./trial.js";

const EVERY = 20_000;
const SHOWN = 6;

const TITLES = { FitsNow: "fits now", FitsAfterPreemption: "fits after evictions", NotNow: "not now", NeverFits: "never, as the nodes are" };

/** Shows in `element` what would help a pod or gang (`kind`), explained at `explain`. Returns a stop function. */
export function fixes(element, kind, explain) {
  const advice = h("div");
  const chances = h("div");
  put(element, chances, advice);
  // What was tried stays when the fixes are drawn again.
  const trials = new Map();
  const tried = (one, body) => {
    const key = JSON.stringify(one.edits);
    if (!trials.has(key)) trials.set(key, trial(one.edits, kind === "gangs" || body.gang ? { includeGangs: [body.gang ?? `${body.namespace}/${body.name}`] } : { include: [`${body.namespace}/${body.name}`] }));
    return trials.get(key);
  };
  const followed = [follow(kind, explain, "suggestions", (body, path) => draw(advice, body, () => suggested(body, path, tried)))];
  if (kind === "pods") followed.push(follow(kind, explain, "feasibility", (body, path) => draw(chances, body, () => feasible(body, path))));
  return () => followed.forEach((one) => one.stop());
}

function follow(kind, explain, what, tell) {
  const [template, path] = [`/apis/v1/explain/${kind}/:namespace/:name/${what}`, `${explain}/${what}`];
  return watchServed(template, path, EVERY, (answer) => answer.ok && tell(answer.body, path));
}

function draw(element, { meta, ...body }, make) {
  whenChanged(element, body, () => put(element, make()));
}

function suggested(body, path, tried) {
  const { fitsNow, fixes: list = [], conflicts = [], note } = body;
  if (fitsNow) return null;
  return [
    section("What would help, each tried out on a copy of the cluster",
      list.length > 0 ? h("ol", { class: "fixes" }, list.slice(0, SHOWN).map((one) => fix(one, tried(one, body)))) : h("p", {}, note ?? "Nothing that could be tried out."),
      list.length > SHOWN && h("p", { class: "quiet" }, `and ${count(list.length - SHOWN)} harder ones`)),
    conflicts.length > 0 && section("What no node meets together", h("ul", { class: "rows" }, conflicts.slice(0, SHOWN).map((one) =>
      h("li", {}, (one.requirements ?? []).flatMap(({ message, subject }, at) => [at ? h("span", { class: "quiet" }, " and ") : null, h("span", { class: "requirement" }, message, subject && !message.includes(subject) && ` (${subject})`)]))))),
    source(path),
  ];
}

function fix(one, trial) {
  const node = one.nodeInCompany ?? one.node;
  const goes = one.inCompany && !one.nodeInCompany ? "alone it goes to " : "it goes to ";
  // A node that the fix would add has no view yet.
  const isNew = (one.edits ?? []).some((edit) => edit.copyNode?.name === node);
  return h("li", {},
    h("div", {}, (one.parts ?? []).map((part) => h("div", { class: "fix-part" },
      h("p", {}, h("strong", {}, part.text), " ", chip(who(part.resolver)), part.owner && chip(`${part.owner.kind} ${part.owner.name}`), part.recreate && h("span", { class: "quiet" }, " (made anew)")),
      part.command && h("code", { class: "command" }, part.command)))),
    h("p", { class: "fix-end quiet" }, node && [goes, isNew ? "the new node" : nodeLink(node)], one.slots !== undefined && !one.gang && `${plural(one.slots, "member")} placed`, one.verified && h("span", { class: "check" }, "verified")),
    ofGang(one.gang),
    company(one),
    one.edits?.length > 0 && trial);
}

/** Says what a fix does to the whole gang, and what its members are made from. */
function ofGang(gang) {
  if (!gang) return null;
  const owners = (gang.owners ?? []).map((owner) => chip(owner.replace("/", " ")));
  return h("p", { class: "fix-note quiet" }, chip(gang.text, gang.all ? "good" : "plain"), owners.length > 0 && [" made from ", owners]);
}

/** Says whether a fix holds with the other pending pods. */
function company({ inCompany, takenBy = [], widened }) {
  if (!inCompany) return null;
  const text = {
    holds: widened ? "holds with the other pending pods, whom some parts serve" : "holds with the other pending pods",
    taken: "other pending pods take the room",
  }[inCompany] ?? "not known whether other pending pods take the room";
  const takers = takenBy.map((name, at) => [at > 0 && ", ", podLink(name)]);
  return h("p", { class: "fix-note quiet" }, chip(text, { holds: "good", taken: "bad" }[inCompany] ?? "wait"), takers.length > 0 && [": ", takers]);
}

function feasible(body, path) {
  const { verdict = {}, maxCopiesNow = 0, maxCopiesEmpty = 0, copiesBound, largestNow } = body;
  const copies = (n) => (n >= copiesBound ? `${count(n)} or more` : count(n));
  return section("Never, or not now?",
    h("p", {}, chip(TITLES[verdict.code] ?? verdict.code, outlookTone(verdict.code)), " ", verdict.message, ". ",
      `Of such pods ${copies(maxCopiesNow)} would fit now, ${copies(maxCopiesEmpty)} on the nodes without their pods.`),
    largestNow && h("p", { class: "quiet" }, `The largest like it that fits now requests ${Object.entries(largestNow.requests).map(([name, n]) => `${asked(name, n)} ${name === "cpu" ? "" : name}`.trim()).join(", ")}, on `, nodeLink(largestNow.node), "."),
    source(path));
}

/** Formats an amount as in a manifest; makes a plain number of bytes readable. */
const asked = (name, text) => (name === "memory" && /^\d+$/.test(text) ? amount(name, Number(text)) : name === "cpu" ? `${text} CPU` : text);
