// Amounts, times and words for people. No element is made here.

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const fine = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const coarse = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const number = { format: (n) => (Math.abs(n) < 100 ? fine : coarse).format(n) };

/** 10000 as `10,000`. */
export const count = (n) => number.format(n);

/** One or many. */
export const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

const isBytes = (resource) => /memory|storage|^hugepages-/.test(resource);

/** An amount in base units (thousandths of a core, bytes, pieces), with its unit. */
export function amount(resource, n) {
  if (resource === "cpu") return `${number.format(n / 1000)} ${Math.abs(n) === 1000 ? "core" : "cores"}`;
  if (!isBytes(resource)) return count(n);
  let at = 0;
  let rest = n;
  while (Math.abs(rest) >= 1024 && at < BYTES.length - 1) [rest, at] = [rest / 1024, at + 1];
  return `${number.format(rest)} ${BYTES[at]}`;
}

/** A resource's name for people. */
export const resourceName = (name) => ({ cpu: "CPU", memory: "Memory", pods: "Pods", "ephemeral-storage": "Disk" })[name] ?? name;

/** 0.234 as `23 %`, on one line. */
export const percent = (share) => `${Math.round(share * 100)}\u00a0%`;

/** A span of milliseconds in its two greatest units. */
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

/** `InsufficientResource` as `Insufficient resource`. */
export function words(code) {
  const spaced = code.replace(/([a-z0-9])([A-Z])/g, "$1 $2").toLowerCase();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** The hours, minutes and seconds of a time. */
export const clockTime = (text) => {
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? "" : at.toLocaleTimeString("en-GB");
};
