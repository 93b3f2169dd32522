// The overview, shown when nothing is selected: the capacity of the cluster, and its gangs.

import { watch, watchServed } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { amount, count, percent, plural, resourceName, words } from "./format.js";
import { deadlock, gangLink, heldBy, INTERFERENCE } from "./deadlock.js";
import { quorum } from "./gang.js";
import * as pending from "./pending.js";
import { chip, clock, failure, link, meter, section, source, tone } from "./parts.js";

const GANGS = "/apis/v1/plugins/Coscheduling/gangs";
const SUMMARY = "/apis/v1/summary/pending";
const LONGEST = 60;
const DEADLOCKS = 5;
const EDGES = 20;
/** Order of gang states: those that need attention come first. */
const ORDER = ["Waiting", "Released", "Unschedulable", "PartiallyBound", "Queued", "Gated", "Placed", "Running", "Finished", "Empty"];

let nodes = [];
let capacity;
let lead;
let known = [];

/** Returns the gangs of the last response, as `namespace/name`. */
export const gangNames = () => known;

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
  const gangs = h("div");
  const contest = h("div");
  const resolvers = h("div");
  put(view,
    h("h2", { id: "view-title", tabindex: "-1", class: "hidden" }, "Overview"),
    lead,
    resolvers,
    section("Requested of what there is", capacity),
    section("Gangs", gangs, contest));
  update();
  const watched = watch(GANGS, 3000, (answer) => {
    const list = answer.ok ? Object.entries(answer.body).filter(([, gang]) => gang && typeof gang === "object" && gang.counts) : [];
    if (answer.ok) known = list.map(([name]) => name);
    if (!answer.ok && answer.status !== 404 && gangs.childElementCount) return;
    const seen = answer.ok ? list.map(([name, gang]) => [name, gang.state, gang.counts, gang.minRequiredNumber, deadline(gang)]) : answer;
    whenChanged(gangs, seen, () => put(gangs, answer.ok ? cards(list) : failure(answer, "gang plugin"), source(GANGS)));
  });
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
    watched.stop();
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

const deadline = (gang) => Object.values(gang.waitingForBindChildren ?? {}).map((one) => one.deadline).filter(Boolean).sort()[0];

function cards(list) {
  if (!list.length) return h("p", { class: "quiet" }, "There are none.");
  const rank = (gang) => (ORDER.indexOf(gang.state) + 1 || ORDER.length + 1);
  const sorted = [...list].sort((a, b) => rank(a[1]) - rank(b[1]) || (a[0] < b[0] ? -1 : 1));
  return [
    h("ul", { class: "gangs" }, sorted.slice(0, LONGEST).map(([name, gang]) => h("li", {},
      h("a", { href: link("gangs", name), "data-key": `gang ${name}`, "data-gang": name },
        h("span", { class: "gang-name" }, name), chip(gang.state, tone(gang.state))),
      quorum(gang.counts, gang.minRequiredNumber ?? 0),
      deadline(gang) && h("p", { class: "deadline" }, "first place given up in ", clock(deadline(gang), "until"))))),
    sorted.length > LONGEST && h("p", { class: "quiet" }, `and ${count(sorted.length - LONGEST)} more`),
  ];
}

function held(edges) {
  return h("ul", { class: "rows" },
    edges.slice(0, EDGES).map((edge) => h("li", {}, gangLink(edge.holder, "contest"), ` holds ${heldBy(edge)} that `, gangLink(edge.waiter, "contest"), " lacks", edge.since && [", since ", clock(edge.since)])),
    edges.length > EDGES && h("li", { class: "quiet" }, `and ${count(edges.length - EDGES)} more`));
}
