// View of a pod: its verdict, the node groups that add up, the nodes nearest to fitting, its wake-ups and its scores.

import { path, read, watch, watchServed } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { clockTime, count, plural, words } from "./format.js";
import { compare } from "./compare.js";
import { fixes } from "./fixes.js";
import { nodeGroups, reasons, shortfall } from "./groups.js";
import { chip, clock, facts, failure, head, link, nodeLink, section, source, tone } from "./parts.js";
import { scores } from "./scores.js";

/** Maximum number of history entries shown. */
const LATEST = 20;
/** Number of units ahead in the queue that are named. */
const AHEAD = 5;

/** Shows the pod `namespace/name` in `view`. Returns a function that ends the view. */
export function show(view, name) {
  const explain = path("apis", "v1", "explain", "pods", name);
  const body = h("div");
  const mending = h("div");
  const tail = h("div");
  const more = h("div");
  put(view, body, mending, tail, more);
  // Request the rest once the pod is known to exist.
  let leave = null;
  let mend = null;
  const watched = watch(explain, 3000, (answer) => {
    if (!answer.ok && body.childElementCount && answer.status !== 404) return;
    const seen = answer.ok ? { ...answer.body, meta: lasting(answer.body.meta) } : answer;
    whenChanged(body, seen, () => {
      put(body, answer.ok ? verdict(answer.body) : [head("pod", name), failure(answer, "pod")]);
      put(tail, answer.ok ? circumstances(answer.body, explain) : null);
    });
    mending.hidden = !answer.ok || answer.body.verdict === "placed" || Boolean(answer.body.notPending);
    if (!mending.hidden) mend ??= fixes(mending, "pods", explain);
    // A deleted pod has a history.
    if (answer.ok || answer.code === "PodDeleted") leave ??= showMore(more, explain, name, answer.body);
  });
  return () => {
    watched.stop();
    leave?.();
    mend?.();
  };
}

function showMore(element, explain, name, pod) {
  const node = pod?.placement?.node ?? "";
  const table = scores(name, Boolean(node));
  const contrast = pod && !["gated", "quarantined", "ended"].includes(pod.verdict) ? compare(name, node) : null;
  const preemption = h("div");
  const past = h("div");
  const turn = h("div");
  put(element, turn, preemption, contrast?.element, table.element, past);
  readPreemption(preemption, explain);
  const followed = [table, history(past, name), waits(pod) && position(turn, name), contrast].filter(Boolean);
  return () => followed.forEach((one) => one.stop());
}

/** Returns whether the pod has a turn to wait for. One that has its place leaves the queue when its Binding is written. */
const waits = (pod) => pod?.queueStage && pod.verdict !== "placed";

/** Shows where the pod's unit stands in the queue, and who is ahead of it. */
function position(element, name) {
  const target = `/apis/v1/queue?position=${encodeURIComponent(name)}&limit=1&fields=key`;
  return watch(target, 6000, (answer) => {
    const { position: at, stage, positionMeaning, ahead = [] } = answer.ok ? answer.body : {};
    whenChanged(element, [at, stage, positionMeaning, ahead.slice(0, AHEAD)], () => put(element, at !== undefined && section("In the queue",
      h("p", {}, `${plural(at, "unit")} ahead of it, in stage ${stage}: ${positionMeaning}. `, h("a", { href: "#/queue", "data-key": "queue" }, "The whole queue")),
      ahead.length > 0 && h("p", { class: "quiet" }, "ahead: ", ahead.slice(0, AHEAD).flatMap((one, n) => [n > 0 && ", ", h("a", { href: link(one.gang ? "gangs" : "pods", one.gang ?? one.key), "data-key": `ahead ${one.key}` }, one.gang ?? one.key)]), at > AHEAD && ` and ${count(at - AHEAD)} more`),
      source(target))));
  });
}

/** Omits the fields that differ at every read of the same verdict. */
const lasting = ({ decidedAt, cycleId, stale, inheritedFrom } = {}) => ({ decidedAt, cycleId, stale, inheritedFrom });

function verdict(pod) {
  const { meta = {} } = pod;
  return [
    head("pod", `${pod.namespace}/${pod.name}`,
      chip(pod.verdict, tone(pod.verdict)),
      pod.outlook && chip(words(pod.outlook.code)),
      pod.queueStage && chip(`queue: ${pod.queueStage}`),
      pod.profile && chip(`profile ${pod.profile}`),
      meta.stale && chip("the cluster has changed since", "plain")),
    h("p", { class: "lead" }, pod.summary),
    (pod.notes ?? []).filter((note) => !pod.summary.includes(note.text)).map((note) => h("p", { class: "aside" }, h("strong", {}, note.plugin), `: ${note.text}. `, note.more && h("a", { href: note.more, target: "_blank", rel: "noopener", "data-key": `note ${note.plugin}` }, "Its numbers"))),
    pod.owner && h("p", { class: "aside" }, "Made by ", h("a", { href: link("owners", `${pod.namespace}/${pod.owner.kind}/${pod.owner.name}`), "data-key": "owner" }, `${pod.owner.kind} ${pod.owner.name}`), ": all its pods that wait."),
    pod.gang && gang(pod.gang),
    (pod.podReasons ?? []).length > 0 && section("About the pod itself", reasons(pod.podReasons)),
    pod.nodeGroups?.length > 0 && section(plural(pod.totalNodes, "node") + ", each for one cause", nodeGroups(pod)),
    pod.nearest && section("Nearest to fitting", nearest(pod.nearest)),
    pod.placement && section("Placement", placement(pod.placement)),
  ];
}

/** Draws past and next attempts, warnings and kube-scheduler's message. */
function circumstances(pod, explain) {
  const { meta = {} } = pod;
  return [
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

async function readPreemption(element, explain) {
  const answer = await read(`${explain}/preemption`);
  const { summary = "", ended = [] } = answer.ok ? answer.body : {};
  if (ended.length > 0 || /^victim|nominated|waits for/i.test(summary)) {
    put(element, section("Preemption", h("p", {}, summary), source(`${explain}/preemption`)));
  }
}

/** Shows the pod's entries in the flight recorder, newest first. */
function history(element, name) {
  const target = path("apis", "v1", "history", "pods", name);
  return watchServed("/apis/v1/history/pods/:namespace/:name", target, 5000, (answer) => {
    const entries = answer.ok ? answer.body.entries ?? [] : [];
    whenChanged(element, entries, () => put(element, entries.length > 0 && section("What happened",
      h("ol", { class: "history" }, entries.slice(-LATEST).reverse().map(happened)), source(target))));
  });
}

function happened(entry) {
  return h("li", {},
    h("time", { class: "quiet", datetime: entry.last, title: entry.last }, clockTime(entry.last)),
    h("strong", {}, words(entry.kind)),
    h("span", {}, entry.count > 1 && [`${count(entry.count)} times since `, clockTime(entry.first), ". "], entry.message));
}
