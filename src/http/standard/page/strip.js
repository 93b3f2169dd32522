// The heat strip: one cell per node, on one canvas. It draws 5,000 cells in a few milliseconds.
//
// For assistive technology it is a list box of nodes, of which the current one is spelled out.

import { h, say } from "./dom.js";
import { count, percent, plural, resourceName } from "./format.js";
import { link } from "./parts.js";

const RAMPS = {
  light: ["#e3ece9", "#b7dbd1", "#7cc0b3", "#3f9c94", "#1d7176", "#12474f", "#0a2b33"],
  dark: ["#1c2a2e", "#1d4247", "#1f6265", "#2b8a82", "#55b69b", "#9cdcb6", "#e0f7dc"],
};
/** Colours of plain lines, of frames around marked cells, and of frames around overcommitted ones. */
const INKS = {
  light: { line: "#b9c8c6", mark: "#b4530a", over: "#c02846" },
  dark: { line: "#3b4d51", mark: "#ffb454", over: "#ff6b81" },
};
const SHADES = 48;
const LABELLED = 64;
const FULLEST = "fullest";

let nodes = [];
let resources = [];
let metric = FULLEST;
let order = "name";
let shown = [];
let active = 0;
let chosen = "";
let marked = new Set();
let grid = { columns: 1, width: 1, height: 1, gap: 1, labels: false };
let parts;
/** Colours by utilisation, and for each whether text on it must be light. */
let shades = [];
let deep = [];

/** Sets up the strip inside its section. */
export function start(section) {
  const at = (name) => section.querySelector(`[data-part=${name}]`);
  parts = { box: at("box"), canvas: at("canvas"), option: at("option"), readout: at("readout"), metric: at("metric"), order: at("order"), legend: at("legend"), summary: at("summary") };
  parts.metric.addEventListener("change", () => { metric = parts.metric.value; arrange(); });
  parts.order.addEventListener("change", () => { order = parts.order.value; arrange(); });
  parts.box.addEventListener("keydown", keys);
  parts.box.addEventListener("focus", draw);
  parts.box.addEventListener("blur", draw);
  parts.canvas.addEventListener("pointermove", (event) => point(event, false));
  parts.canvas.addEventListener("click", (event) => point(event, true));
  new ResizeObserver(() => draw()).observe(parts.box);
  recolour();
}

/** Recomputes the colours after the theme changed. */
export function recolour() {
  const ramp = RAMPS[isDark() ? "dark" : "light"];
  const mixed = Array.from({ length: SHADES + 1 }, (_, at) => mix(ramp, at / SHADES));
  shades = mixed.map((channels) => `rgb(${channels.join(" ")})`);
  deep = mixed.map((channels) => luminance(channels) < 0.23);
  const legend = parts.legend.getContext("2d");
  for (let x = 0; x < parts.legend.width; x++) {
    legend.fillStyle = shade(x / (parts.legend.width - 1));
    legend.fillRect(x, 0, 1, parts.legend.height);
  }
  draw();
}

function isDark() {
  const set = document.documentElement.dataset.theme;
  return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function mix(ramp, share) {
  const place = share * (ramp.length - 1);
  const from = Math.min(ramp.length - 2, Math.floor(place));
  const part = place - from;
  const channel = (hex, at) => parseInt(hex.slice(1 + 2 * at, 3 + 2 * at), 16);
  return [0, 1, 2].map((at) => Math.round(channel(ramp[from], at) * (1 - part) + channel(ramp[from + 1], at) * part));
}

/** Returns the relative luminance of a colour, as defined by WCAG. */
function luminance(channels) {
  const [red, green, blue] = channels.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

const step = (share) => Math.round(Math.max(0, Math.min(1, share)) * SHADES);
const shade = (share) => shades[step(share)];
const isDeep = (used, dark) => (used === null ? dark : deep[step(used)]);

/** Stores the nodes of a response. */
export function update(list) {
  nodes = list;
  const names = new Set(["cpu", "memory", "pods"]);
  for (const node of nodes) for (const name in node.allocatable) if (node.allocatable[name] > 0) names.add(name);
  const wanted = [FULLEST, ...names];
  if (wanted.join() !== resources.join()) {
    resources = wanted;
    const title = (name) => (name === FULLEST ? "Fullest resource" : resourceName(name));
    parts.metric.replaceChildren(...wanted.map((name) => h("option", { value: name, selected: name === metric }, title(name))));
  }
  arrange();
}

/** Returns the requested share of a resource: 1 is all, null when the node has none. */
function share(node, resource) {
  if (resource !== FULLEST) {
    const all = node.allocatable[resource] ?? 0;
    const taken = node.requested[resource] ?? 0;
    return all > 0 ? taken / all : taken > 0 ? Infinity : null;
  }
  let most = null;
  for (const name in node.allocatable) {
    const one = share(node, name);
    if (one !== null && (most === null || one > most)) most = one;
  }
  return most;
}

function arrange() {
  const current = shown[active]?.node.name;
  shown = nodes.map((node) => ({ node, share: share(node, metric) }));
  if (order === "use") shown.sort((a, b) => (b.share ?? -1) - (a.share ?? -1) || (a.node.name < b.node.name ? -1 : 1));
  const again = shown.findIndex((cell) => cell.node.name === current);
  active = again >= 0 ? again : 0;
  summarise();
  draw();
  tellActive();
}

function summarise() {
  const shares = shown.map((cell) => cell.share).filter((s) => s !== null).sort((a, b) => a - b);
  const cordoned = nodes.filter((node) => node.unschedulable).length;
  const unready = nodes.filter((node) => !node.ready).length;
  const full = shares.filter((s) => s >= 1).length;
  const middle = shares.length ? `median ${percent(shares[shares.length >> 1])}` : "";
  const notes = [plural(nodes.length, "node"), middle, full && `${count(full)} full`, cordoned && `${count(cordoned)} cordoned`, unready && `${count(unready)} not ready`];
  parts.legend.parentElement.classList.toggle("small", nodes.length > LABELLED);
  say(parts.summary, notes.filter(Boolean).join(" · "));
}

/** Chooses the cell size: labelled tiles for few nodes, else the largest square that fits. */
function layout(width, n) {
  if (n <= LABELLED && (width >= 700 || n <= 8)) {
    const columns = Math.max(1, Math.min(n, Math.floor(width / 86)));
    const rows = Math.ceil(n / columns);
    const even = Math.ceil(n / rows);
    return { columns: even, width: width / even, height: 46, gap: 3, labels: true };
  }
  const room = width < 700 ? 340 : 230;
  let size = n <= LABELLED ? 34 : 26;
  while (size > 4 && Math.ceil(n / Math.floor(width / size)) * size > room) size -= 0.5;
  const columns = Math.floor(width / size);
  return { columns, width: width / columns, height: size, gap: size > 10 ? 2 : 1, labels: false };
}

function draw() {
  const width = parts?.box.clientWidth ?? 0;
  if (!width || !shown.length || !shades.length) return;
  grid = layout(width, shown.length);
  const height = Math.ceil(shown.length / grid.columns) * grid.height;
  const scale = window.devicePixelRatio || 1;
  const { canvas } = parts;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  const dark = isDark();
  const ink = { ...INKS[dark ? "dark" : "light"], dark };
  shown.forEach((cell, at) => paint(context, cell, box(at), ink));
  frame(context, ink);
}

function box(at) {
  const x = (at % grid.columns) * grid.width;
  const y = Math.floor(at / grid.columns) * grid.height;
  return { x, y, w: grid.width - grid.gap, h: grid.height - grid.gap };
}

function paint(context, cell, { x, y, w, h: height }, ink) {
  const { node, share: used } = cell;
  const radius = grid.labels ? 5 : Math.min(3, w / 4);
  if (w < 12 && (node.unschedulable || !node.ready)) return sign(context, node, used, { x, y, w, h: height }, ink);
  context.beginPath();
  context.roundRect(x, y, w, height, radius);
  if (used === null) {
    context.strokeStyle = ink.line;
    context.lineWidth = 1;
    context.stroke();
  } else {
    context.fillStyle = shade(used);
    context.fill();
  }
  if (node.unschedulable || !node.ready) hatch(context, x, y, w, height, radius, !node.ready, used, ink);
  if (used > 1) {
    context.strokeStyle = ink.over;
    context.lineWidth = grid.labels ? 2 : 1;
    context.stroke();
  }
  if (grid.labels) label(context, cell, x, y, w, ink);
}

/** Draws a cell too small for hatching: half a cell for a cordoned node, a cross for one that is not ready. */
function sign(context, node, used, { x, y, w, h: height }, ink) {
  context.beginPath();
  if (node.ready) {
    context.fillStyle = shade(Math.max(0.12, used ?? 0));
    context.moveTo(x, y);
    context.lineTo(x + w, y + height);
    context.lineTo(x, y + height);
    context.fill();
    return;
  }
  context.strokeStyle = ink.over;
  context.lineWidth = 1.5;
  context.moveTo(x + 0.5, y + 0.5);
  context.lineTo(x + w - 0.5, y + height - 0.5);
  context.moveTo(x + w - 0.5, y + 0.5);
  context.lineTo(x + 0.5, y + height - 0.5);
  context.stroke();
}

function hatch(context, x, y, w, height, radius, crossed, used, ink) {
  context.save();
  context.beginPath();
  context.roundRect(x, y, w, height, radius);
  context.clip();
  context.strokeStyle = isDeep(used, ink.dark) ? "rgb(255 255 255 / 30%)" : "rgb(0 20 25 / 28%)";
  context.lineWidth = grid.labels ? 1.5 : 1;
  context.beginPath();
  const every = grid.labels ? 8 : 4;
  for (let at = -height; at < w; at += every) {
    context.moveTo(x + at, y + height);
    context.lineTo(x + at + height, y);
    if (!crossed) continue;
    context.moveTo(x + at, y);
    context.lineTo(x + at + height, y + height);
  }
  context.stroke();
  context.restore();
}

function label(context, { node, share: used }, x, y, w, ink) {
  context.fillStyle = isDeep(used, ink.dark) ? "#ffffff" : "#0a2b33";
  const family = getComputedStyle(parts.box).fontFamily;
  context.font = `600 11px ${family}`;
  context.textBaseline = "alphabetic";
  context.fillText(fitting(context, node.name, w - 14), x + 7, y + 18, w - 12);
  context.font = `11px ${family}`;
  const state = !node.ready ? "not ready" : node.unschedulable ? "cordoned" : used === null ? "none" : percent(used);
  context.fillText(state, x + 7, y + 33, w - 12);
}

function fitting(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 3 && context.measureText(`…${text.slice(-end)}`).width > width) end -= 1;
  return `…${text.slice(-end)}`;
}

/** Frames the cells that a view points at, the selected one, and the current one while the strip has the focus. */
function frame(context, ink) {
  const ring = (at, out, thick) => {
    const { x, y, w, h: height } = box(at);
    context.strokeStyle = ink.mark;
    context.lineWidth = thick;
    context.beginPath();
    context.roundRect(x - out, y - out, w + 2 * out, height + 2 * out, grid.labels ? 6 : 3);
    context.stroke();
  };
  shown.forEach(({ node }, at) => {
    if (node.name === chosen || marked.has(node.name)) ring(at, 0, 2);
  });
  if (document.activeElement === parts.box) ring(active, grid.labels ? -2 : 1.5, 3);
}

/** Marks the node of the open view. */
export function choose(name) {
  if (chosen === name) return;
  chosen = name;
  draw();
}

/** Marks the nodes that another part of the page refers to. */
export function mark(names) {
  marked = new Set(names);
  draw();
}

function describe({ node, share: used }) {
  const shares = ["cpu", "memory", "pods"].map((name) => [name, share(node, name)]).filter(([, s]) => s !== null);
  const state = !node.ready ? "not ready" : node.unschedulable ? "cordoned" : "ready";
  const uses = shares.map(([name, s]) => `${resourceName(name)} ${percent(s)}`);
  if (metric !== FULLEST && !["cpu", "memory", "pods"].includes(metric)) uses.unshift(`${metric} ${used === null ? "none" : percent(used)}`);
  return [node.name, state, plural(node.pods, "pod"), ...uses].join(" · ");
}

function tellActive() {
  const cell = shown[active];
  if (!cell) return;
  say(parts.option, describe(cell));
  parts.option.setAttribute("aria-setsize", shown.length);
  parts.option.setAttribute("aria-posinset", active + 1);
  say(parts.readout, describe(cell));
  parts.box.dataset.nodes = shown.length;
}

function keys(event) {
  const page = grid.columns * 5;
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: grid.columns, ArrowUp: -grid.columns, PageDown: page, PageUp: -page, Home: -shown.length, End: shown.length }[event.key];
  if (by !== undefined && !event.altKey && !event.ctrlKey && !event.metaKey) {
    active = Math.max(0, Math.min(shown.length - 1, active + by));
    draw();
    tellActive();
  } else if ((event.key === "Enter" || event.key === " ") && shown[active]) {
    openNode(shown[active].node.name);
  } else {
    return;
  }
  event.preventDefault();
}

function point(event, open) {
  const column = Math.floor(event.offsetX / grid.width);
  const at = Math.floor(event.offsetY / grid.height) * grid.columns + column;
  if (column >= grid.columns || !shown[at]) return;
  active = at;
  tellActive();
  if (open) openNode(shown[at].node.name);
}

let picker = null;

/** Hands the nodes that are clicked to `take` instead of opening them, until it is called with null. */
export function pick(take) {
  picker = take;
}

function openNode(name) {
  if (picker) picker(name);
  else location.hash = link("nodes", name);
}
