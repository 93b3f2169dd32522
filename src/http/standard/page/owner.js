// View of a controller: the pending pods that it made, page by page.

import { h, put } from "./dom.js";
import { count, plural, requested, words } from "./format.js";
import { pages } from "./pages.js";
import { chip, clock, head, outlookTone, podLink } from "./parts.js";

const FIELDS = "namespace,name,createdAt,priority,stage,attempts,verdict,keyReason,outlook,requests";

const COLUMNS = [
  ["Pod", (pod) => podLink(`${pod.namespace}/${pod.name}`)],
  ["Waits for", (pod) => (pod.createdAt ? clock(pod.createdAt) : "–"), "n"],
  ["Priority", (pod) => count(pod.priority ?? 0), "n"],
  ["Requests", (pod) => requested(pod.requests ?? {})],
  ["Queue", (pod) => pod.stage ?? pod.verdict],
  ["Attempts", (pod) => count(pod.attempts ?? 0), "n"],
  ["Why", (pod) => (pod.keyReason ? words(pod.keyReason) : "Not decided yet")],
  ["Outlook", (pod) => pod.outlook && chip(words(pod.outlook), outlookTone(pod.outlook))],
];

/** Shows the pending pods of the controller `namespace/kind/name` in `view`. Returns a function that ends the view. */
export function show(view, name) {
  const [namespace, kind, own] = name.split("/");
  const body = h("div", { class: "part" });
  put(view, head("controller", `${namespace}/${own}`, chip(kind)), body);
  const query = new URLSearchParams({ namespace, owner: `${kind}/${own}`, fields: FIELDS });
  return pages(body, {
    target: () => `/apis/v1/explain/pods?${query}`,
    array: "pods",
    columns: COLUMNS,
    what: "pending pods of the controller",
    head: ({ count: n }) => h("p", { class: "lead" }, n ? `${plural(n, "pod")} of it ${n === 1 ? "waits" : "wait"}.` : "No pod of it waits."),
  }).stop;
}
