// The overview, shown when nothing is selected: the capacity of the cluster, the last hour, and the gangs.

import { watch, watchServed } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { amount, count, percent, plural, resourceName, words } from "./format.js";
import { deadlock, gangLink, heldBy, INTERFERENCE } from "./deadlock.js";
import { gangCards } from "./gangs.js";
import * as pending from "./pending.js";
import { clock, meter, section, source } from "./parts.js";
import { trends } from "./trends.js";

const SUMMARY = "/apis/v1/summary/pending";
const DEADLOCKS = 5;
const EDGES = 20;

let nodes = [];
let capacity;
let lead;

/** Stores the nodes of a response, if given, and redraws what depends on nodes and pending pods. */
export function update(list) {
  nodes = list ?? nodes;
  if (!capacity?.isConnected || !nodes.length) return;
  drawCapacity();
  drawLead();
}

/** Shows the overview in `view`. Returns a function that ends the view. */
export function show(view) {
  capacity = h("div", { class: "meters" });
  lead = h("p", { class: "lead" });
  const past = h("div");
  const gangs = section("Gangs");
  const contest = h("div");
  const resolvers = h("div");
  put(view,
    h("h2", { id: "view-title", tabindex: "-1", class: "hidden" }, "Overview"),
    lead,
    resolvers,
    section("Requested of what there is", capacity),
    past,
    gangs);
  gangs.hidden = true;
  update();
  const hour = trends(past);
  const cards = h("div");
  gangs.append(cards, contest);
  const listed = gangCards(cards, () => { gangs.hidden = false; });
  const interfering = watch(INTERFERENCE, 6000, (answer) => {
    if (!answer.ok) return;
    const { edges = [], cycles = [] } = answer.body;
    whenChanged(contest, [edges, cycles], () => {
      drawDeadlocks(edges, cycles);
      put(contest, edges.length ? held(edges) : null);
    });
  });
  const summed = watchServed(SUMMARY, `${SUMMARY}?by=resolver`, 5000, (answer) => {
    const { rows = [], totalPending = 0 } = answer.ok ? answer.body : {};
    whenChanged(resolvers, rows, () => put(resolvers, totalPending > 0 && section("Who can resolve it", h("div", { class: "meters" }, rows.map((row) =>
      meter(row.resolver ? words(row.resolver) : "Nobody in particular", row.pods / totalPending, plural(row.pods, "pod")))))));
  });
  return () => {
    hour.stop();
    listed.stop();
    interfering.stop();
    summed.stop();
    drawDeadlocks([], []);
  };
}

/** Says at the top of the page which gangs wait for each other. */
function drawDeadlocks(edges, cycles) {
  const top = document.getElementById("deadlocks");
  top.hidden = cycles.length === 0;
  put(top, cycles.length > 0 && [
    h("h2", { id: "deadlocks-title" }, cycles.length === 1 ? "A deadlock of gangs" : `${count(cycles.length)} deadlocks of gangs`),
    h("ul", { role: "status" }, cycles.slice(0, DEADLOCKS).map((cycle) => h("li", {}, deadlock(cycle, edges)))),
    cycles.length > DEADLOCKS && h("p", { class: "quiet" }, `and ${count(cycles.length - DEADLOCKS)} more`),
    source(INTERFERENCE)]);
}

function drawLead() {
  const held = nodes.reduce((sum, node) => sum + node.pods, 0);
  const waiting = pending.size();
  const most = pending.commonest();
  const first = `${plural(held, "pod")} ${held === 1 ? "has its" : "have their"} place on ${plural(nodes.length, "node")}; ${waiting ? plural(waiting, "pod") : "none"} ${waiting === 1 ? "waits" : "wait"}.`;
  const second = most ? ` The commonest reason: ${words(most.code).toLowerCase()} (${plural(most.n, "pod")}).` : "";
  whenChanged(lead, first + second, () => put(lead, first, h("span", { class: "quiet" }, second)));
}

function drawCapacity() {
  const all = new Map();
  for (const node of nodes) {
    for (const name in node.allocatable) {
      const sum = all.get(name) ?? [0, 0, 0];
      sum[0] += node.allocatable[name];
      sum[1] += node.requested[name] ?? 0;
      if (node.allocatable[name] > 0) sum[2] += 1;
      all.set(name, sum);
    }
  }
  const rows = [...all].filter(([, [offered]]) => offered > 0);
  whenChanged(capacity, rows, () => put(capacity, rows.map(([name, [offered, taken, on]]) => {
    const text = `${percent(taken / offered)} · ${amount(name, taken)} of ${amount(name, offered)}${on < nodes.length ? ` on ${plural(on, "node")}` : ""}`;
    return meter(resourceName(name), taken / offered, text);
  })));
}

function held(edges) {
  return h("ul", { class: "rows" },
    edges.slice(0, EDGES).map((edge) => h("li", {}, gangLink(edge.holder, "contest"), ` holds ${heldBy(edge)} that `, gangLink(edge.waiter, "contest"), " lacks", edge.since && [", since ", clock(edge.since)])),
    edges.length > EDGES && h("li", { class: "quiet" }, `and ${count(edges.length - EDGES)} more`));
}
