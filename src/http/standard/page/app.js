// Entry point of the page: connects its parts, chooses the view by the address, and updates clocks and connection
// state.

import { askAll, onHealth, read, watch } from "./api.js";
import { h, put, say, whenChanged } from "./dom.js";
import { count, span } from "./format.js";
import * as feed from "./feed.js";
import * as find from "./find.js";
import * as gang from "./gang.js";
import * as node from "./node.js";
import * as overview from "./overview.js";
import * as owner from "./owner.js";
import { turnClocks } from "./parts.js";
import * as pending from "./pending.js";
import * as pod from "./pod.js";
import * as queue from "./queue.js";
import * as quotas from "./quotas.js";
import * as reservations from "./reservations.js";
import * as strip from "./strip.js";
import * as theme from "./theme.js";

const VIEWS = { pods: [pod, 2], gangs: [gang, 2], nodes: [node, 1], owners: [owner, 3], queue: [queue, 0], quotas: [quotas, 0], reservations: [reservations, 0, 1] };

const byId = (id) => document.getElementById(id);
const view = byId("view");
const help = byId("help");

let leave = () => {};
let shown = null;
let nodes = [];
let health = { trouble: null, lastHeard: 0, generation: 0 };

/** Returns the view and the name in the address. */
function route() {
  const [kind = "", ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const [module, ...parts] = VIEWS[kind] ?? [overview, 0];
  try {
    const name = rest.map(decodeURIComponent).join("/");
    return VIEWS[kind] && parts.includes(rest.length) && rest.every(Boolean) ? { kind, module, name } : { kind: "", module: overview, name: "" };
  } catch {
    return { kind: "", module: overview, name: "" };
  }
}

function navigate() {
  const to = route();
  const key = `${to.kind} ${to.name}`;
  if (shown === key) return;
  const first = shown === null;
  const from = shown;
  shown = key;
  leave();
  const screen = h("div");
  put(view, screen);
  leave = to.module.show(screen, to.name);
  strip.choose(to.kind === "nodes" ? to.name : "");
  strip.mark([]);
  pending.choose(to.kind === "pods" ? to.name : "");
  byId("columns").classList.toggle("overview", !to.kind);
  document.title = to.name ? `${to.name} · Pellucid` : "Pellucid";
  if (!first) focusView(to, from);
}

/** Moves the focus to the title of the new view, or back to the row that led away from the overview. */
function focusView(to, from) {
  if (!to.kind && from?.startsWith("pods ")) {
    const row = document.querySelector(`a[data-pod="${CSS.escape(from.slice(5))}"]`);
    if (row) return row.focus();
  }
  const title = () => view.querySelector("#view-title");
  if (title()) return title().focus();
  // Whoever has moved on before the view is drawn keeps the focus where it is.
  const before = document.activeElement;
  new MutationObserver((_, observer) => {
    if (!title()) return;
    observer.disconnect();
    if ([document.body, before].includes(document.activeElement)) title().focus();
  }).observe(view, { childList: true, subtree: true });
}

function facts() {
  const pods = nodes.reduce((sum, one) => sum + one.pods, 0);
  const items = nodes.length ? [[count(nodes.length), "nodes"], [count(pods), "pods on them"], [count(pending.size()), "waiting"]] : [];
  whenChanged(byId("facts"), items, () => put(byId("facts"), items.map(([n, what]) => h("div", {}, h("dt", {}, what), h("dd", {}, n)))));
}

/** Shows the state of the connection. Screen readers do not read out the part that changes every second. */
function showHealth() {
  const { trouble, lastHeard, generation } = health;
  const state = byId("state");
  const banner = byId("banner");
  const [told, counted] = banner.querySelectorAll("span");
  state.dataset.state = trouble ? (trouble.status === 0 ? "gone" : "busy") : lastHeard ? "live" : "begin";
  say(state.querySelector("span"), { gone: "no answer", busy: "busy", live: "live", begin: "connecting" }[state.dataset.state]);
  say(state.querySelector("small"), !trouble && generation ? `generation ${count(generation)}` : "");
  banner.hidden = !trouble;
  if (!trouble) return say(told, "");
  say(told, trouble.status === 0 ? "The scheduler does not answer." : `The scheduler is busy (${trouble.status}: ${trouble.message}).`);
  const old = lastHeard ? ` What is shown is ${span(Date.now() - lastHeard)} old.` : "";
  say(counted, `Asking again in ${span(Math.max(0, trouble.again - Date.now()))}.${old}`);
}

/** Goes to a view at once, so that the next key already finds it. The event that the browser sends later changes nothing. */
function go(hash) {
  location.hash = hash;
  navigate();
}

function keys(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || help.open) return;
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && shown?.trim()) {
    go("#/");
  } else if (typing) {
    return;
  } else if (event.key === "?") {
    help.showModal();
  } else if (event.key === "/") {
    find.focus();
  } else if (event.key === "n") {
    byId("nodes").querySelector("[data-part=box]").focus();
  } else if (event.key === "p") {
    byId("pending").querySelector("[data-roving]")?.focus();
  } else if (event.key === "q") {
    go("#/queue");
  } else if (event.key === "u") {
    go("#/quotas");
  } else if (event.key === "r") {
    go("#/reservations");
  } else if (event.key === "v") {
    view.querySelector("#view-title")?.focus();
  } else if (event.key === "t") {
    view.querySelector(".trend-box[data-roving]")?.focus();
  } else if (event.key === "e") {
    byId("feed").querySelector("a, button:not([hidden])")?.focus();
  } else {
    return;
  }
  event.preventDefault();
}

/** Marks the nodes on the strip that a part of the view refers to. */
function pointAt(event) {
  const part = event.target.closest("[data-node], [data-nodes]");
  const names = part ? part.dataset.node ?? part.dataset.nodes : "";
  strip.mark(names.split(" ").filter(Boolean));
}

function* names() {
  for (const one of nodes) yield ["nodes", one.name];
}

strip.start(byId("nodes"));
pending.start(byId("pending"), () => {
  overview.update();
  facts();
});
find.start(byId("find"), names);
theme.start(byId("theme"), strip.recolour);
feed.start(byId("feed"));
onHealth((state) => {
  health = state;
  showHealth();
});
watch("/apis/v1/nodes?limit=0&fields=name,ready,unschedulable,pods,allocatable,requested", 2000, (answer) => {
  if (!answer.ok) return;
  nodes = answer.body.nodes ?? [];
  strip.update(nodes);
  overview.update(nodes);
  facts();
});
read("/apis/v1/reasons").then((answer) => {
  if (!answer.ok) return;
  pending.explainReasons(answer.body.reasons ?? []);
});
read(quotas.STATE).then((answer) => {
  byId("pending").querySelector("[data-part=quotas]").hidden = !(answer.ok && answer.body.quotas > 0);
});
read(reservations.STATE).then((answer) => {
  byId("pending").querySelector("[data-part=reservations]").hidden = !(answer.ok && Object.keys(answer.body.phases ?? {}).length > 0);
});
read("/version").then((answer) => answer.ok && say(byId("version"), answer.body.gitVersion ?? ""));
window.addEventListener("hashchange", navigate);
document.addEventListener("keydown", keys);
view.addEventListener("pointerover", pointAt);
view.addEventListener("focusin", pointAt);
view.addEventListener("pointerleave", () => strip.mark([]));
byId("skip").addEventListener("click", (event) => {
  // The address selects the view, so it must not become that of an anchor.
  event.preventDefault();
  view.focus();
});
byId("again").addEventListener("click", askAll);
byId("help-open").addEventListener("click", () => help.showModal());
setInterval(() => {
  if (document.hidden) return;
  turnClocks();
  showHealth();
}, 1000);
navigate();
