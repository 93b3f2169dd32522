// View of a node: its resources and their use, its pods and hardware, and the pending pods that it would refuse.

import { path, watch, watchServed } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { amount, count, percent, plural, resourceName } from "./format.js";
import { show as showHardware } from "./hardware.js";
import { chip, facts, failure, head, meter, podLink, section, source } from "./parts.js";

const LONGEST = 200;
const REFUSALS = 40;

/** Shows a node in `view`. Returns a function that ends the view. */
export function show(view, name) {
  const target = path("apis", "v1", "nodes", name);
  const body = h("div");
  const hardware = h("div");
  const refusals = h("div");
  put(view, body, hardware, refusals);
  const endHardware = showHardware(hardware, name);
  const watched = watch(target, 3000, (answer) => {
    if (!answer.ok && body.childElementCount && answer.status !== 404) return;
    const { meta, ...seen } = answer.ok ? answer.body : answer;
    whenChanged(body, seen, () => put(body, answer.ok ? node(answer.body, target) : [head("node", name), failure(answer, "node")]));
  });
  const explain = path("apis", "v1", "explain", "nodes", name);
  const explained = watchServed("/apis/v1/explain/nodes/:nodeName", explain, 10_000, (answer) => {
    if (!answer.ok) return;
    const { meta, ...seen } = answer.body;
    whenChanged(refusals, seen, () => put(refusals, reverse(answer.body, explain)));
  });
  return () => {
    watched.stop();
    explained.stop();
    endHardware();
  };
}

function node(one, target) {
  const pods = one.podsOnNode ?? [];
  return [
    head("node", one.name,
      one.ready ? chip("ready", "good") : chip("not ready", "bad"),
      one.unschedulable && chip("cordoned", "wait"),
      chip(plural(one.pods, "pod"))),
    section("Requested", Object.keys(one.allocatable).map((name) => use(one, name))),
    section("About it", facts([
      ["taints", tags((one.taints ?? []).map((t) => `${t.key}${t.value ? `=${t.value}` : ""}:${t.effect}`))],
      ["labels", tags(Object.entries(one.labels ?? {}).map(([key, value]) => `${key}=${value}`))],
      ["promised to nominees", listed(one.nominated)],
      ["reserved", listed(one.reserved)],
    ])),
    section(`Pods on it (${count(pods.length)})`, pods.length ? table(pods) : h("p", { class: "quiet" }, "None.")),
    source(target),
  ];
}

function use(one, name) {
  const all = one.allocatable[name];
  const taken = one.requested[name] ?? 0;
  const share = all > 0 ? taken / all : taken > 0 ? Infinity : 0;
  const free = one.free?.[name] ?? all - taken;
  return meter(resourceName(name), share, `${all > 0 ? percent(share) : "–"} · ${amount(name, taken)} of ${amount(name, all)}, ${amount(name, free)} free`);
}

const tags = (list) => (list.length ? h("ul", { class: "tags" }, list.map((text) => h("li", {}, text))) : null);

const listed = (amounts) => Object.entries(amounts ?? {}).filter(([, n]) => typeof n === "number").map(([name, n]) => `${name} ${amount(name, n)}`).join(", ");

function table(pods) {
  const shown = pods.slice(0, LONGEST);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Pods on the node" },
    h("table", {},
      h("thead", {}, h("tr", {}, ["Pod", "Stage", "CPU", "Memory", "Priority"].map((title, at) => h("th", { scope: "col", class: at > 1 ? "n" : "" }, title)))),
      h("tbody", {}, shown.map((pod) => h("tr", {},
        h("th", { scope: "row" }, podLink(`${pod.namespace}/${pod.name}`)),
        h("td", {}, pod.stage),
        h("td", { class: "n" }, amount("cpu", pod.requests?.cpu ?? 0)),
        h("td", { class: "n" }, amount("memory", pod.requests?.memory ?? 0)),
        h("td", { class: "n" }, count(pod.priority ?? 0)))))),
    pods.length > LONGEST && h("p", { class: "quiet" }, `and ${count(pods.length - LONGEST)} more`));
}

/** Draws which pending pods this node takes and refuses, and which free resources none of them can use. */
function reverse({ accepts = [], refuses = [], stranded = [], pendingTotal = 0, pendingConsidered = 0 }, explain) {
  const asked = pendingConsidered < pendingTotal ? `Of the first ${count(pendingConsidered)} of ${plural(pendingTotal, "pod")} that wait` : `Of ${plural(pendingTotal, "pod")} that wait`;
  return [
    section("Pending pods and this node",
      h("p", {}, `${asked}, it would take ${count(accepts.length)} and refuses ${count(refuses.length)}.`),
      h("ul", { class: "rows" },
        accepts.slice(0, REFUSALS).map((one) => h("li", {}, chip("takes", "good"), " ", podLink(one.pod))),
        refuses.slice(0, REFUSALS).map((one) => h("li", {}, chip("refuses", "bad"), " ", podLink(one.pod), " ", h("span", { class: "plugin" }, one.plugin), " ", h("span", { class: "quiet" }, one.message)))),
      refuses.length > REFUSALS && h("p", { class: "quiet" }, `and ${count(refuses.length - REFUSALS)} more`)),
    stranded.length > 0 && section("Stranded", h("ul", { class: "rows" }, stranded.map((one) =>
      h("li", {}, h("strong", {}, `${resourceName(one.resource)}: ${amount(one.resource, one.amount)}`), `${one.part ? ` of ${one.part}` : ""} that none of the ${plural(one.pods, "pod")} asking for it can use, for lack of ${one.blockedBy}`)))),
    source(explain),
  ];
}
