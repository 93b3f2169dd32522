// The hardware of a node: its sockets and NUMA nodes, with the devices on their PCIe switches as bars by pod, and the cores
// with their threads by pod beside them.

import { path, watchServed } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { plural } from "./format.js";
import { podLink, section, source } from "./parts.js";

const EVERY = 4000;
const HUES = 8;

/** Shows the hardware of a node in `view`, as far as the scheduler knows it. Returns a function that ends it. */
export function show(view, name) {
  const target = (plugin) => path("apis", "v1", "plugins", plugin, "nodes", name);
  const seen = { DeviceShare: null, NodeNUMAResource: null };
  const draw = () => whenChanged(view, seen, () => put(view, hardware(seen.DeviceShare ?? {}, seen.NodeNUMAResource ?? {}, target)));
  const watched = Object.keys(seen).map((plugin) => watchServed(`/apis/v1/plugins/${plugin}/nodes/:nodeName`, target(plugin), EVERY, (answer) => {
    if (!answer.ok) return;
    seen[plugin] = answer.body;
    draw();
  }));
  return () => watched.forEach((one) => one.stop());
}

/** Returns the CPUs of a list such as `0-3,8`. */
export function cpuset(text) {
  const range = (part) => {
    const [first, last = first] = part.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => first + at);
  };
  return (text ?? "").split(",").filter((part) => part !== "").flatMap(range);
}

function hardware({ devices = [], unknownPods = [] }, numa, target) {
  const cpus = Object.values(numa.cpuTopology?.cpuDetails ?? {});
  if (devices.length === 0 && cpus.length === 0) return null;
  const owners = new Map();
  for (const pod of numa.allocatedPods ?? []) for (const cpu of cpuset(pod.cpuset)) owners.set(cpu, `${pod.namespace}/${pod.name}`);
  for (const cpu of cpuset(numa.reservedCPUs)) owners.set(cpu, null);
  const pods = [...new Set([...devices.flatMap((one) => one.shares.map((share) => share.pod)), ...owners.values()])].filter(Boolean).sort();
  const hue = new Map(pods.map((pod, at) => [pod, `hue-${at % HUES}`]));
  const sockets = new Map();
  const zone = (socket, node) => {
    const nodes = sockets.get(socket) ?? new Map();
    const found = nodes.get(node) ?? { devices: [], cpus: [] };
    sockets.set(socket, nodes.set(node, found));
    return found;
  };
  const socketOf = new Map(cpus.map((cpu) => [cpu.nodeID, cpu.socketID]));
  for (const cpu of cpus) zone(cpu.socketID, cpu.nodeID).cpus.push(cpu);
  for (const one of devices) zone(socketOf.get(one.numaNode) ?? one.socket, one.numaNode).devices.push(one);
  const order = (map) => [...map].sort(([a], [b]) => (a ?? Infinity) - (b ?? Infinity));
  const left = new Map((numa.remainingNUMANodeResources ?? []).map((one) => [one.node, one.resources]));
  return section("Devices and CPUs",
    legend(pods, hue),
    h("div", { class: "hardware" }, order(sockets).map(([socket, nodes]) => h("div", { class: "socket", "data-socket": String(socket ?? "") },
      h("h4", {}, socket === undefined ? "Socket unknown" : `Socket ${socket}`),
      order(nodes).map(([node, of]) => numaNode(node, of, { left: left.get(node), owners, hue }))))),
    unknownPods.length > 0 && h("p", { class: "quiet" }, `It is not known which devices these have: ${unknownPods.join(", ")}`),
    devices.length > 0 && source(target("DeviceShare")),
    cpus.length > 0 && source(target("NodeNUMAResource")));
}

function legend(pods, hue) {
  const key = (kind, words) => h("span", { class: "key" }, h("i", { class: kind }), words);
  return h("p", { class: "legend" },
    pods.map((pod) => key(`owned ${hue.get(pod)}`, podLink(pod, { "data-key": `hardware ${pod}` }))),
    key("free", "free"), key("broken", "not healthy, or not given"));
}

function numaNode(node, { devices, cpus }, { left, owners, hue }) {
  const free = cpus.filter((cpu) => !owners.has(cpu.cpuID)).length;
  const said = [cpus.length > 0 && `${free} of ${plural(cpus.length, "CPU")} free`,
    left && Object.entries(left).filter(([name]) => name !== "cpu").map(([name, text]) => `${text} of ${name} left`).join(", ")].filter(Boolean);
  const switches = new Map();
  for (const one of devices) switches.set(one.pcieId ?? "", [...(switches.get(one.pcieId ?? "") ?? []), one]);
  const name = node === undefined ? "NUMA node unknown" : `NUMA ${node}`;
  return h("div", { class: "numa", "data-numa": String(node ?? "") },
    h("p", {}, h("strong", {}, name), said.length > 0 && h("span", { class: "quiet" }, ` ${said.join(" · ")}`)),
    h("div", { class: "numa-parts" },
      [...switches].sort().map(([pcie, of]) => h("div", { class: "pcie", "data-pcie": pcie },
        h("p", { class: "quiet" }, pcie || "no known PCIe switch"), of.map((one) => device(one, hue)))),
      cpus.length > 0 && cores(name, cpus, owners, hue)));
}

function device({ deviceType, minor, healthy, freePercent, shares }, hue) {
  const name = `${deviceType} ${minor}`;
  const parts = shares.map(({ pod, percent }) => `${pod} ${percent} %`);
  const said = healthy ? [...parts, `${freePercent} % free`].join(", ") : ["not healthy", ...parts].join(", ");
  return h("div", { class: "device", "data-device": name },
    h("span", { class: "device-name" }, name),
    h("span", { class: healthy ? "device-bar" : "device-bar broken", role: "img", "aria-label": `${name}: ${said}`, title: said },
      shares.map(({ pod, percent }) => h("i", { class: `owned ${hue.get(pod)}`, style: { "inline-size": `${Math.min(100, percent)}%` } }))));
}

/** Draws the cores of a NUMA node, each with its threads. */
function cores(name, cpus, owners, hue) {
  const byCore = new Map();
  for (const cpu of [...cpus].sort((a, b) => a.cpuID - b.cpuID)) byCore.set(cpu.coreID, [...(byCore.get(cpu.coreID) ?? []), cpu.cpuID]);
  const held = new Map();
  for (const { cpuID } of cpus) if (owners.get(cpuID)) held.set(owners.get(cpuID), (held.get(owners.get(cpuID)) ?? 0) + 1);
  const free = cpus.filter((cpu) => !owners.has(cpu.cpuID)).length;
  const said = [...[...held].sort().map(([pod, n]) => `${pod} ${n}`), `${free} free`].join(", ");
  const thread = (cpu) => {
    const owner = owners.get(cpu);
    const kind = owner ? `owned ${hue.get(owner)}` : owner === null ? "broken" : "free";
    return h("i", { class: kind, "data-cpu": String(cpu), title: `CPU ${cpu}: ${owner ?? (owner === null ? "not given to pods" : "free")}` });
  };
  return h("div", { class: "cores", role: "img", "aria-label": `CPUs of ${name}: ${said}` },
    [...byCore].map(([core, threads]) => h("span", { class: "core", "data-core": String(core) }, threads.map(thread))));
}
