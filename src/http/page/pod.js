// A pod's verdict: the sentence, the node groups that add up, what comes nearest, what could wake it, its scores.

import { path, read, watch } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { count, plural, words } from "./format.js";
import { nodeGroups, reasons, shortfall } from "./groups.js";
import { chip, clock, facts, failure, head, link, nodeLink, section, source, tone } from "./parts.js";
import { scores } from "./scores.js";

/** Shows the pod `namespace/name` in `view` until the returned function is called. */
export function show(view, name) {
  const explain = path("apis", "v1", "explain", "pods", name);
  const body = h("div");
  const table = scores(name);
  const preemption = h("div");
  put(view, body, preemption, table.element);
  const watched = watch(explain, 3000, (answer) => {
    if (!answer.ok && body.childElementCount && answer.status !== 404) return;
    const seen = answer.ok ? { ...answer.body, meta: lasting(answer.body.meta) } : answer;
    whenChanged(body, seen, () => put(body, answer.ok ? verdict(answer.body, explain) : [head("pod", name), failure(answer, `pod ${name}`)]));
    table.toggle(answer.ok);
  });
  readPreemption(preemption, explain, name);
  return () => {
    watched.stop();
    table.stop();
  };
}

/** Leaves out what differs at every read of the same verdict. */
const lasting = ({ decidedAt, cycleId, stale, inheritedFrom } = {}) => ({ decidedAt, cycleId, stale, inheritedFrom });

function verdict(pod, explain) {
  const { meta = {} } = pod;
  return [
    head("pod", `${pod.namespace}/${pod.name}`,
      chip(pod.verdict, tone(pod.verdict)),
      pod.queueStage && chip(`queue: ${pod.queueStage}`),
      pod.profile && chip(`profile ${pod.profile}`),
      meta.stale && chip("the cluster has changed since", "plain")),
    h("p", { class: "lead" }, pod.summary),
    pod.gang && gang(pod.gang),
    (pod.podReasons ?? []).length > 0 && section("About the pod itself", reasons(pod.podReasons)),
    pod.nodeGroups?.length > 0 && section(plural(pod.totalNodes, "node") + ", each for one cause", nodeGroups(pod)),
    pod.nearest && section("Nearest to fitting", nearest(pod.nearest)),
    pod.placement && section("Placement", placement(pod.placement)),
    section("Attempts", facts([
      ["attempts", count(pod.attempts ?? 0)],
      ["decided", meta.decidedAt && [clock(meta.decidedAt), " ago"]],
      ["next try, at the latest", pod.nextRetry && ["in ", clock(pod.nextRetry, "until")]],
      ["tried at once after", pod.wakesOn?.length > 0 && h("ul", { class: "tags" }, pod.wakesOn.map((one) => h("li", {}, one)))],
      ["nominated to", pod.nominatedNode && nodeLink(pod.nominatedNode)],
    ])),
    (pod.warnings ?? []).length > 0 && section("Warnings", pod.warnings.map((one) => h("p", {}, typeof one === "string" ? one : one.message ?? JSON.stringify(one)))),
    pod.message && section("As kube-scheduler says it", h("p", { class: "mono" }, pod.message)),
    source(explain),
  ];
}

function gang(one) {
  return h("p", { class: "aside" }, "Member of gang ",
    h("a", { href: link("gangs", one.gang), "data-key": `gang ${one.gang}` }, one.gang), ", ",
    words(one.member).toLowerCase(), ". ", one.message, one.message && ".");
}

function nearest(one) {
  const nodes = one.exampleNodes ?? [];
  return [
    h("p", {}, h("strong", {}, plural(one.count, "node")), nodes.length > 0 && (one.count > nodes.length ? ", such as " : ": "),
      nodes.flatMap((node, at) => [at ? ", " : "", nodeLink(node)]), one.plugin && [" ", h("span", { class: "plugin" }, one.plugin)]),
    reasons(one.reasons),
    (one.shortfalls ?? []).map(shortfall),
  ];
}

function placement(one) {
  return facts([
    ["node", nodeLink(one.node)],
    ["stage", one.stage],
    ["score", one.score !== undefined && `${count(one.score)}, the greatest of ${plural(one.feasibleNodes, "feasible node")}`],
    ["ties", one.tieRule],
  ]);
}

async function readPreemption(element, explain, name) {
  const answer = await read(`${explain}/preemption`);
  const told = answer.ok && ((answer.body.ended ?? []).length > 0 || /Victim|Nominated|waits/i.test(answer.body.summary ?? ""));
  if (told && element.isConnected) put(element, section("Preemption", h("p", {}, answer.body.summary), source(`${explain}/preemption`)));
  element.dataset.pod = name;
}
