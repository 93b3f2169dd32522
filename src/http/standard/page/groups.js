// Node groups: a bar in which the counts of all groups and of the nodes not evaluated add up to all nodes, and a list
// that says for each group why it was refused, by how much, and what would help.

import { h } from "./dom.js";
import { amount, count, plural, words } from "./format.js";
import { chip, nodeLink } from "./parts.js";

const HUES = 8;
/** Number of groups with their own segment. The others share one more; all have an entry in the list. */
const SEGMENTS = 12;

const letter = (at) => (at < 26 ? String.fromCharCode(65 + at) : `${at + 1}`);

/** Plugins that say a node is not for the pod, whatever it has: such nodes come after those that are. */
const APART = ["TaintToleration", "NodeUnschedulable", "NodeAffinity", "NodeName"];

/** Draws the node groups of a verdict or of a gang's root cause; null when there are no nodes. The groups of the nearest
 * nodes come first, those that the pod does not ask for last. */
export function nodeGroups({ nodeGroups: groups = [], notEvaluated = 0, totalNodes = 0, nearest, requirements = [] }) {
  if (!totalNodes) return null;
  const near = new Set(nearest?.exampleNodes ?? []);
  // The node with the smallest shortfall is of the group too, if not among its examples.
  const nodesOf = (one) => [...(one.exampleNodes ?? []), ...(one.shortfalls ?? []).map((short) => short.bestNode)];
  const isNear = (one) => nodesOf(one).some((node) => near.has(node));
  const rank = (one) => (isNear(one) ? -1 : APART.indexOf(one.plugin) + 1);
  const sorted = groups.map((one, at) => [rank(one), at, one]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, , one]) => one);
  return [bar(sorted, notEvaluated, totalNodes), h("ol", { class: "groups" }, sorted.map((one, at) => group(one, at, isNear(one), requirements)))];
}

function bar(groups, notEvaluated, totalNodes) {
  const drawn = groups.slice(0, SEGMENTS).map((one, at) => ({ n: one.count, text: letter(at), hue: at % HUES }));
  const others = groups.slice(SEGMENTS).reduce((sum, one) => sum + one.count, 0);
  if (others > 0) drawn.push({ n: others, text: "…", hue: HUES - 1 });
  if (notEvaluated > 0) drawn.push({ n: notEvaluated, text: "", hue: "none" });
  const counts = groups.map((one) => one.count);
  const sum = counts.reduce((all, n) => all + n, 0) + notEvaluated;
  const terms = [...counts.map(count), notEvaluated > 0 || !counts.length ? `${count(notEvaluated)} not evaluated` : null];
  const formula = `${terms.filter((term) => term !== null).join(" + ")} = ${plural(sum, "node")}`;
  return h("figure", { class: "adds-up", "data-sum": sum, "data-total": totalNodes },
    h("div", { class: "stack", role: "img", "aria-label": formula },
      drawn.map(({ n, text, hue }) => h("i", { class: `seg hue-${hue}`, style: { "flex-grow": String(n) } },
        h("b", {}, text), h("span", {}, count(n))))),
    h("figcaption", {}, formula,
      sum === totalNodes ? h("span", { class: "check" }, "all accounted for") : chip(`but there are ${count(totalNodes)}`, "bad")));
}

/** Returns the requirements that a group of nodes fails, in words: the keys of taints and labels, and what is there
 * instead. A requirement says of how many nodes it holds, so it is true beside any group. */
function terms(one, requirements) {
  const codes = new Set((one.reasons ?? []).filter((reason) => reason.code !== "InsufficientResource").map((reason) => reason.code));
  const subjects = (one.reasons ?? []).map((reason) => reason.subject).filter(Boolean);
  const known = requirements.filter((term) => term.plugin === one.plugin && codes.has(term.code));
  const named = known.filter((term) => subjects.some((subject) => term.text.includes(subject)));
  return named.length ? named : known;
}

function group(one, at, isNear, requirements) {
  const helpless = one.code === "UnschedulableAndUnresolvable";
  return h("li", { class: "group", "data-key": `group ${at}`, tabindex: "-1", "data-nodes": (one.exampleNodes ?? []).join(" ") },
    h("span", { class: `badge hue-${at % HUES}`, "aria-hidden": "true" }, letter(at)),
    h("div", {},
      h("p", { class: "group-head" },
        h("strong", {}, plural(one.count, "node")), " ",
        isNear && chip("the nearest is among them", "good"), isNear && " ",
        h("span", { class: "plugin" }, one.plugin), " ",
        h("span", { class: "quiet", title: one.code }, helpless ? "evicting pods would not help" : "evicting pods could help")),
      reasons(one.reasons),
      terms(one, requirements).map((term) => h("p", { class: "terms" }, term.text, (term.didYouMean ?? []).map(({ given, meant }) => h("strong", {}, ` Did you mean ${meant} instead of ${given}?`)))),
      (one.shortfalls ?? []).map(shortfall),
      (one.details ?? []).map(({ node, text }) => h("p", { class: "terms" }, nodeLink(node), ` ${text}`)),
      one.exampleNodes?.length > 0 && h("p", { class: "examples" }, one.count > one.exampleNodes.length ? "such as " : "", spaced(one.exampleNodes.map(nodeLink)))));
}

const spaced = (items) => items.flatMap((item, at) => (at ? [", ", item] : [item]));

/** Draws reasons: each message, then each remedy with who can apply it, once for all reasons that share it. */
export function reasons(list = []) {
  const remedies = new Map(list.filter((one) => one.remedy).map((one) => [`${one.remedy} ${one.resolver}`, one]));
  return h("div", { class: "reason" },
    list.map((one) => h("p", {}, h("span", { class: "message" }, one.message), " ", h("code", { class: "code" }, one.code))),
    [...remedies.values()].map((one) => h("p", { class: "remedy" }, one.remedy, " ", one.resolver && chip(who(one.resolver)))));
}

/** Returns a sentence about who can resolve a reason. */
export const who = (resolver) => (resolver === "time" ? "time may resolve it" : `${words(resolver)} can resolve it`);

/** Draws how much of a resource was requested, and the most that any of the nodes had free. */
export function shortfall(one) {
  const has = Math.max(0, one.available);
  const share = one.requested > 0 ? Math.min(1, has / one.requested) : 0;
  const text = `requested ${amount(one.resource, one.requested)}, at most ${amount(one.resource, one.available)} free`;
  return h("p", { class: "shortfall" },
    h("span", { class: "shortfall-name" }, one.resource),
    h("span", { class: "meter-bar", "aria-hidden": "true" }, h("i", { style: { "inline-size": `${share * 100}%` } })),
    h("span", {}, text, one.bestNode && [" on ", nodeLink(one.bestNode)]));
}
