// View of the quotas: the tree as nested bars of one resource, each with what is used, what may be used now, and the
// bounds of both.

import { watchServed } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { amount, plural } from "./format.js";
import { chip, failure, head, section, source } from "./parts.js";

export const STATE = "/apis/v1/plugins/ElasticQuota/state";
const PENDING = "/apis/v1/summary/pending";
const WAITING = `${PENDING}?by=quota&limit=0`;
const EVERY = 4000;

/** Shows the quotas in `view`. Returns a function that ends the view. */
export function show(view) {
  const body = h("div");
  const choice = h("select", { "aria-label": "Resource", onchange: () => draw() });
  put(view, head("what each team may use", "Quotas"), h("p", { class: "filters part" }, choice), body);
  let seen = null;
  let waiting = new Map();
  const draw = () => {
    if (!seen?.ok) return put(body, failure(seen, "quota"));
    const rows = seen.body.rows ?? [];
    const resources = [...new Set(rows.filter((row) => !isBuiltIn(row.quota)).map((row) => row.resource))];
    if (!resources.includes(choice.value)) put(choice, resources.map((name) => h("option", { value: name }, name)));
    const resource = choice.value || resources[0];
    const own = rows.filter((row) => row.resource === resource);
    whenChanged(body, [resource, own, [...waiting], seen.body.problems, seen.body.truncated], () => put(body,
      own.length ? [legend(), tree(own, resource, waiting)] : h("p", { class: "quiet" }, "There are no quotas."),
      (seen.body.problems ?? []).length > 0 && section("Problems", h("ul", { class: "rows" }, seen.body.problems.map((one) => h("li", {}, h("strong", {}, one.quota), `: ${one.field} ${one.value}: ${one.problem}`)))),
      seen.body.truncated && h("p", { class: "quiet" }, "There are more quotas than are shown."),
      source(STATE)));
  };
  const state = watchServed(STATE, STATE, EVERY, (answer) => {
    if (!answer.ok && seen?.ok && answer.status !== 404) return;
    seen = answer;
    draw();
  });
  const counted = watchServed(PENDING, WAITING, EVERY, (answer) => {
    if (!answer.ok) return;
    waiting = new Map((answer.body.rows ?? []).map((row) => [row.groups?.quota ?? "", row.pods]));
    if (seen) draw();
  });
  return () => {
    state.stop();
    counted.stop();
  };
}

const isBuiltIn = (name) => /^koordinator-(root|system|default)-quota$/.test(name);

/** Parses a quantity into base units: thousandths of a core for CPU, else bytes or pieces. */
export function parse(resource, text) {
  const [, digits, suffix] = /^(-?[\d.]+(?:e-?\d+)?)([a-zA-Z]*)$/.exec(text ?? "0") ?? [null, "0", ""];
  const binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].indexOf(suffix);
  const decimal = ["m", "", "k", "M", "G", "T", "P", "E"].indexOf(suffix);
  const units = Number(digits) * (binary >= 0 ? 1024 ** (binary + 1) : 1000 ** (decimal - 1));
  return resource === "cpu" ? units * 1000 : units;
}

function tree(rows, resource, waiting) {
  const names = new Set(rows.map((row) => row.quota));
  const children = new Map();
  for (const row of rows.filter((one) => !isBuiltIn(one.quota))) {
    const parent = names.has(row.parent) ? row.parent : "";
    children.set(parent, [...(children.get(parent) ?? []), row]);
  }
  const of = (row) => ["min", "max", "used", "runtime", "request", "borrowed"].reduce((all, name) => ({ ...all, [name]: parse(resource, row[name]) }), {});
  const top = children.get("") ?? [];
  const whole = Math.max(1, ...top.map(of).flatMap(({ max, used }) => [max, used]));
  const list = (parent) => h("ul", { class: "quotas" }, (children.get(parent) ?? []).map((row) => h("li", {},
    bar(row.quota, of(row), { resource, whole, pods: waiting.get(row.quota) ?? 0 }),
    children.has(row.quota) && list(row.quota))));
  return list("");
}

/** Draws one quota. Lengths are shares of `whole`, the same for all, so that bars can be compared. */
function bar(name, of, { resource, whole, pods }) {
  const share = (n) => ({ "inline-size": `${Math.min(100, (n / whole) * 100)}%` });
  const at = (n) => ({ "inset-inline-start": `${Math.min(100, (n / whole) * 100)}%` });
  const text = (n) => amount(resource, n);
  const over = of.used - of.runtime;
  const starved = of.used < Math.min(of.min, of.request);
  const said = `uses ${text(of.used)} of ${text(of.runtime)} that it may use now; min ${text(of.min)}, max ${text(of.max)}, requests ${text(of.request)}`
    + (of.borrowed > 0 ? `, borrows ${text(of.borrowed)}` : "");
  return h("div", { class: "quota", "data-quota": name },
    h("p", {}, h("strong", {}, name), " ",
      over > 0 && chip(`over by ${text(over)}`, "bad"),
      starved && chip(`${text(Math.min(of.min, of.request) - of.used)} short of its min`, "wait"),
      of.borrowed > 0 && chip(`borrows ${text(of.borrowed)}`),
      pods > 0 && h("a", { href: `${PENDING}?by=code&quota=${encodeURIComponent(name)}`, "data-key": `waiting ${name}` }, chip(`${plural(pods, "pod")} waiting`, "wait"))),
    h("div", { class: "quota-bar", role: "img", "aria-label": `${name} ${said}` },
      h("i", { class: "quota-max", style: share(of.max) }),
      h("i", { class: "quota-runtime", style: share(of.runtime) }),
      h("i", { class: over > 0 ? "quota-used over" : "quota-used", style: share(of.used) }),
      h("b", { style: at(of.min) })),
    h("p", { class: "quiet", "aria-hidden": "true" }, said));
}

const legend = () => h("p", { class: "legend" },
  [["quota-used", "used"], ["quota-runtime", "may be used now"], ["quota-max", "up to max"], ["quota-min", "min"]].map(([kind, words]) =>
    h("span", { class: "key" }, h("i", { class: kind }), words)));
