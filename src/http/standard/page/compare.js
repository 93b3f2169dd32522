// Why one node and not another: two nodes, chosen by clicking on them, and what the plugins say of both.

import { path, read } from "./api.js";
import { h, put, say } from "./dom.js";
import { count } from "./format.js";
import { reasons } from "./groups.js";
import { chip, section, source } from "./parts.js";
import * as strip from "./strip.js";

/** Creates the part of a pod's view that compares two nodes; `node` is the pod's own, or empty. */
export function compare(name, node) {
  const target = (versus) => `${path("apis", "v1", "explain", "placements", name)}?versus=${encodeURIComponent(versus)}`;
  const result = h("div", { role: "status", class: "contrast" });
  const field = (title, value) => h("input", { type: "search", "aria-label": title, placeholder: title, value, autocomplete: "off", spellcheck: "false" });
  const fields = [field("Node A", node), field("Node B", "")];
  const button = h("button", { type: "button", "aria-pressed": "false", "data-key": "pick nodes", onclick: () => arm(button.getAttribute("aria-pressed") === "false") }, "Choose two nodes by clicking");
  const arm = (on) => {
    button.setAttribute("aria-pressed", String(on));
    say(button, on ? "Click a node above …" : "Choose two nodes by clicking");
    strip.pick(on ? picked : null);
    document.removeEventListener("click", clicked, true);
    if (on) document.addEventListener("click", clicked, true);
    if (on && fields.every((one) => one.value)) fields[1].value = "";
  };
  const clicked = (event) => {
    const part = event.target.closest("a[data-node]");
    if (!part) return;
    event.preventDefault();
    event.stopPropagation();
    picked(part.dataset.node);
  };
  const picked = (chosen) => {
    (fields.find((one) => !one.value) ?? fields[1]).value = chosen;
    if (fields.every((one) => one.value)) {
      arm(false);
      ask();
    }
  };
  const ask = async () => {
    const [a, b] = fields.map((one) => one.value.trim());
    if (!a || !b || a === b) return put(result, h("p", { class: "error" }, "Two different nodes are needed."));
    put(result, h("p", { class: "quiet" }, "asking …"));
    put(result, await contrast(target, a, b));
  };
  const form = h("form", { class: "filters", onsubmit: (event) => { event.preventDefault(); ask(); } },
    button, fields, h("button", { "data-key": "compare" }, "Compare"));
  return { element: section("Why one node and not another", form, result), stop: () => arm(false) };
}

/** Asks about both nodes, once when one of them is the pod's own or the one it would go to, and draws the answer. */
async function contrast(target, a, b) {
  const first = await read(target(a));
  if (!first.ok && first.code !== "SameNode") return wrong(first);
  if (first.ok && first.body.chosen === b) return [h("p", { class: "lead" }, first.body.summary), sides(own(first.body), other(first.body)), rule(first.body), source(target(a))];
  const second = await read(target(b));
  if (!second.ok) return wrong(second);
  if (!first.ok) return [h("p", { class: "lead" }, second.body.summary), sides(own(second.body), other(second.body)), rule(second.body), source(target(b))];
  const moved = first.body.meta?.snapshotGeneration !== second.body.meta?.snapshotGeneration;
  return [
    h("p", {}, first.body.summary), h("p", {}, second.body.summary),
    moved && h("p", { class: "quiet" }, "The cluster changed between the two answers."),
    sides(other(first.body), other(second.body)), source(target(a)), source(target(b))];
}

const wrong = (answer) => h("p", { class: "error" }, answer.message);

const shares = (body, side) => new Map(body.plugins.filter((one) => !one.skipped).map((one) => [one.plugin, { weight: one.weight, n: one.weighted[side], decisive: one.decisive, opposing: one.opposing }]));

const own = (body) => ({ node: body.chosen, reason: body.chosenReason, shares: shares(body, "chosen"), total: body.total?.chosen, wins: body.winner === body.chosen });
const other = (body) => ({ node: body.versus, reason: body.reason, shares: shares(body, "versus"), total: body.total?.versus, wins: body.winner === body.versus });

/** Draws two nodes side by side: what refuses each, or what each plugin gives to both. */
function sides(a, b) {
  const refusal = (one) => one.reason && h("div", { class: "part" },
    h("h4", {}, one.node, " ", chip("refuses", "bad"), " ", h("span", { class: "plugin" }, one.reason.plugin)),
    reasons(one.reason.reasons), one.reason.detail && h("p", { class: "quiet" }, one.reason.detail));
  const names = [...new Set([...a.shares.keys(), ...b.shares.keys()])];
  return [refusal(a), refusal(b), names.length > 0 && table(a, b, names)];
}

function table(a, b, names) {
  const cell = (one, name) => h("td", { class: "n" }, one.shares.has(name) ? count(one.shares.get(name).n) : "–");
  const gap = (x, y) => (x === undefined || y === undefined ? "–" : `${x > y ? "+" : ""}${count(x - y)}`);
  const told = (name) => [a, b].some((one) => one.shares.get(name)?.decisive) ? chip("decides", "good") : [a, b].some((one) => one.shares.get(name)?.opposing) ? chip("speaks against", "wait") : null;
  const title = (one) => [one.node, one.wins && h("small", {}, " wins")];
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Scores of the two nodes" },
    h("table", { class: "scores contrast-table" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Plugin"), h("th", { scope: "col", class: "n" }, title(a)), h("th", { scope: "col", class: "n" }, title(b)), h("th", { scope: "col", class: "n" }, "Gap"), h("th", { scope: "col" }, ""))),
      h("tbody", {},
        names.map((name) => h("tr", {}, h("th", { scope: "row" }, name, " ", h("small", {}, `× ${(a.shares.get(name) ?? b.shares.get(name)).weight}`)), cell(a, name), cell(b, name), h("td", { class: "n" }, gap(a.shares.get(name)?.n, b.shares.get(name)?.n)), h("td", {}, told(name)))),
        h("tr", { class: "chosen" }, h("th", { scope: "row" }, "Total"), [a, b].map((one) => h("td", { class: "n total" }, one.total === undefined ? "–" : count(one.total))), h("td", { class: "n" }, gap(a.total, b.total)), h("td", {})))));
}

const rule = (body) => body.outcome === "TieBreak" && h("p", { class: "quiet" }, `Ties: ${body.tieRule}.`);
