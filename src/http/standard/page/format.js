// Formats amounts, times and words for people. Creates no elements.

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const fine = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const coarse = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const number = { format: (n) => (Math.abs(n) < 100 ? fine : coarse).format(n) };

/** Formats 10000 as `10,000`. */
export const count = (n) => number.format(n);

/** Formats a count with its noun in the singular or plural. */
export const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

const isBytes = (resource) => /memory|storage|^hugepages-/.test(resource);

/** Formats an amount in base units (thousandths of a core, bytes, pieces), with its unit. */
export function amount(resource, n) {
  if (resource === "cpu") return `${number.format(n / 1000)} ${Math.abs(n) === 1000 ? "core" : "cores"}`;
  if (!isBytes(resource)) return count(n);
  let at = 0;
  let rest = n;
  while (Math.abs(rest) >= 1024 && at < BYTES.length - 1) [rest, at] = [rest / 1024, at + 1];
  return `${number.format(rest)} ${BYTES[at]}`;
}

/** Formats requests, quantities by resource, as `4 CPU · 16Gi · 8 nvidia.com/gpu`. */
export function requested(requests) {
  const rank = (name) => ({ cpu: 0, memory: 1 })[name] ?? 2;
  const each = Object.entries(requests).sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
  return each.map(([name, text]) => (name === "cpu" ? `${text} CPU` : name === "memory" ? text : `${text} ${name}`)).join(" · ") || "nothing";
}

/** Returns the display name of a resource. */
export const resourceName = (name) => ({ cpu: "CPU", memory: "Memory", pods: "Pods", "ephemeral-storage": "Disk" })[name] ?? name;

/** Formats 0.234 as `23 %`, without a line break inside. */
export const percent = (share) => `${Math.round(share * 100)}\u00a0%`;

/** Formats a duration in milliseconds in its two largest units. */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = Math.max(0, units.findIndex(([, size]) => seconds >= size));
  const at = seconds === 0 ? 3 : first;
  const [unit, size] = units[at];
  const whole = Math.floor(seconds / size);
  const next = units[at + 1];
  const rest = next ? Math.floor((seconds % size) / next[1]) : 0;
  return rest > 0 ? `${whole} ${unit} ${rest} ${next[0]}` : `${whole} ${unit}`;
}

/** Formats `InsufficientResource` as `Insufficient resource`. */
export function words(code) {
  const spaced = code.replace(/([a-z0-9])([A-Z])/g, "$1 $2").toLowerCase();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** Formats a timestamp as hours, minutes and seconds. */
export const clockTime = (text) => {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? "" : at.toLocaleTimeString("en-GB");
};
