// The last hour as small multiples: pending pods, Bindings and attempts per second, how long placed pods had waited, and
// the pods of each reason. One chart per number, all over the same time. Pointer or arrow keys read a moment in all of
// them; each chart is a slider for screen readers. Nothing is shown of what was measured fewer than twice.

import { watchServed } from "./api.js";
import { h, put, rove, say, svg, whenChanged } from "./dom.js";
import { clockTime, count, plural, span, words } from "./format.js";
import { section, source } from "./parts.js";

const TRENDS = "/apis/v1/trends";
const EVERY = 10_000;
const REASONS = 8;
/** Size of a chart in its own units; the style stretches it. */
const [WIDTH, HEIGHT] = [240, 60];
/** A gap of this many intervals breaks the line. Reasons are counted less often when that is costly. */
const GAPS = { number: 2.5, reason: 7 };

const pods = (n) => plural(n, "pod");
const each = (n) => `${n > 0 && n < 0.1 ? n.toFixed(2) : count(n)}/s`;
const wait = (n) => (n < 1 ? `${count(n * 1000)} ms` : n < 100 ? `${count(n)} s` : span(n * 1000));

/** Shows the trends in `element`, which stays empty until there are some. Returns `{stop}`. */
export function trends(element) {
  /** Time of the moment that is read, and the chart from which; null reads the newest. */
  const reading = { at: null, key: "", tell: () => {} };
  return watchServed(TRENDS, TRENDS, EVERY, (answer) => {
    if (!answer.ok) return;
    const { samples = [], everySeconds = 10, meanings = {} } = answer.body;
    whenChanged(element, samples, () => {
      const { at, key } = reading;
      put(element, drawn(samples, everySeconds, meanings, reading));
      rove(element, ".trend-box");
      // The focus is in the new chart, and so is the moment that was read.
      if (element.contains(document.activeElement)) [reading.at, reading.key] = [at, key];
      reading.tell();
    });
  });
}

function drawn(samples, everySeconds, meanings, reading) {
  const times = samples.map((sample) => Date.parse(sample.at));
  const all = panels(samples, meanings).filter((panel) => panel.values.filter((value) => value !== null).length > 1);
  if (!all.length) return null;
  const charts = all.map((panel) => chart(panel, times, everySeconds));
  reading.tell = () => charts.forEach((one) => one.tell(reading.at, reading.key));
  for (const one of charts) listen(one, charts, times, reading);
  const time = times.at(-1) - times[0];
  const list = (kind, title) => {
    const of = charts.filter((one) => one.kind === kind);
    return of.length > 0 && h("ul", { class: "trends", "aria-label": title }, of.map((one) => one.element));
  };
  return section(time > 3_540_000 ? "The last hour" : `The last ${span(time)}`,
    list("number", "All pods"), list("reason", "Pending pods by reason"), source(TRENDS));
}

/** Returns what there is to draw: a title and a value per sample, null where there is none. */
function panels(samples, meanings) {
  const number = (key, title, field, format) =>
    ({ kind: "number", key, title, format, meaning: meanings[field === "pending" ? "reasons" : field], values: samples.map((sample) => sample[field] ?? null) });
  return [
    number("pending", "Pending", "pending", pods),
    number("binds", "Bindings", "bindsPerSecond", each),
    number("attempts", "Attempts", "attemptsPerSecond", each),
    number("wait", "Wait until placed, p99", "waitP99Seconds", wait),
    ...reasons(samples, meanings.reasons),
  ];
}

/** Returns a panel per reason, those that kept most pods first. */
function reasons(samples, meaning) {
  const most = new Map();
  for (const { reasons: listed = [] } of samples) for (const { code, pods: n } of listed) most.set(code, Math.max(n, most.get(code) ?? 0));
  const codes = [...most].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([code]) => code);
  const shown = new Set(codes.slice(0, REASONS));
  const values = (n) => samples.map((sample) => (sample.reasons ? n(sample) : null));
  const panel = (code) => ({
    kind: "reason", key: `reason ${code}`, title: words(code), format: pods, meaning,
    values: values((sample) => sample.reasons.find((one) => one.code === code)?.pods ?? 0),
  });
  const rest = (sample) => sample.reasons.filter((one) => !shown.has(one.code)).reduce((sum, one) => sum + one.pods, sample.otherReasons ?? 0);
  const others = { kind: "reason", key: "other reasons", title: "Other reasons", format: pods, meaning, values: values(rest) };
  return [...[...shown].map(panel), ...(others.values.some((n) => n > 0) ? [others] : [])];
}

/** Creates a chart. `tell(at, key)` shows the value at a time, or the newest; the chart `key` has the reader's attention. */
function chart({ kind, key, title, format, meaning, values }, times, everySeconds) {
  const known = values.filter((value) => value !== null);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const x = (at) => ((times[at] - times[0]) / Math.max(1, times.at(-1) - times[0])) * WIDTH;
  const y = (value) => HEIGHT - 1 - (value / (most || 1)) * (HEIGHT - 5);
  const newest = values.findLastIndex((value) => value !== null);
  const now = format(values[newest]);
  const when = h("span", { class: "quiet" });
  const value = h("strong", {}, now);
  const mark = h("i", { class: "trend-mark", hidden: true });
  const box = h("div", {
    class: "trend-box", tabindex: "-1", role: "slider", "aria-readonly": "true", "aria-label": title, "data-key": `trend ${key}`,
    "aria-description": `From ${format(least)} to ${format(most)}, ${now} now. Left and right walk in time.`,
    "aria-valuemin": "0", "aria-valuemax": String(times.length - 1),
  }, svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    runs(values, times, GAPS[kind] * everySeconds * 1000).map((run) => [area(run, x, y, values), line(run, x, y, values)])), mark);
  const tell = (time, attended) => {
    const at = time === null ? -1 : nearest(times, time);
    const shown = at < 0 ? newest : at;
    const text = values[shown] === null ? "–" : format(values[shown]);
    say(value, text);
    say(when, at < 0 ? `up to ${format(most)}` : clockTime(times[shown]));
    mark.hidden = at < 0;
    mark.classList.toggle("here", attended === key);
    mark.style.setProperty("inset-inline-start", `${(x(shown) / WIDTH) * 100}%`);
    box.setAttribute("aria-valuenow", String(shown));
    box.setAttribute("aria-valuetext", `${values[shown] === null ? "none" : text} at ${clockTime(times[shown])}`);
  };
  const element = h("li", { class: "trend", "data-trend": key, title: meaning }, h("p", { class: "trend-head" }, h("span", {}, title), value), box, h("p", { class: "trend-foot" }, when));
  return { kind, key, element, box, tell };
}

/** Splits the samples that have a value into runs without a longer gap, in milliseconds. */
function runs(values, times, gap) {
  const found = [];
  let before = null;
  values.forEach((value, at) => {
    if (value === null) return;
    const isNear = before !== null && times[at] - times[before] <= gap;
    if (isNear) found.at(-1).push(at);
    else found.push([at]);
    before = at;
  });
  return found;
}

const point = (at, x, y, values) => `${x(at).toFixed(1)} ${y(values[at]).toFixed(1)}`;

/** A run of one sample is a dot: a line of no length with round ends. */
const line = (run, x, y, values) => svg("path", { class: "trend-line", d: `M${run.map((at) => point(at, x, y, values)).join("L")}${run.length === 1 ? "h0.01" : ""}` });

const area = (run, x, y, values) => svg("path", { class: "trend-area", d: `M${x(run[0]).toFixed(1)} ${HEIGHT}L${run.map((at) => point(at, x, y, values)).join("L")}L${x(run.at(-1)).toFixed(1)} ${HEIGHT}Z` });

const nearest = (times, time) => times.reduce((best, one, at) => (Math.abs(one - time) < Math.abs(times[best] - time) ? at : best), 0);

/** Lets pointer and keys move the moment that is read. */
function listen({ key, box }, charts, times, reading) {
  const read = (at) => {
    reading.at = at === null ? null : times[at];
    reading.key = at === null ? "" : key;
    reading.tell();
  };
  box.addEventListener("pointermove", (event) => {
    const { left, width } = box.getBoundingClientRect();
    const share = Math.max(0, Math.min(1, (event.clientX - left) / Math.max(1, width)));
    read(nearest(times, times[0] + share * (times.at(-1) - times[0])));
  });
  box.addEventListener("pointerleave", () => read(document.activeElement === box ? times.length - 1 : null));
  box.addEventListener("focus", () => {
    rove(box.closest(".part"), ".trend-box", box);
    read(reading.at === null ? times.length - 1 : nearest(times, reading.at));
  });
  box.addEventListener("blur", () => read(null));
  box.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const other = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const step = { ArrowRight: 1, ArrowLeft: -1, PageUp: 6, PageDown: -6, Home: -Infinity, End: Infinity }[event.key];
    if (other === undefined && step === undefined) return;
    event.preventDefault();
    if (other !== undefined) {
      const own = charts.findIndex((one) => one.box === box);
      const { at } = reading;
      const next = charts[Math.max(0, Math.min(charts.length - 1, own + other))].box;
      next.focus();
      if (at !== null) read(nearest(times, at));
      return;
    }
    const at = reading.at === null ? times.length - 1 : nearest(times, reading.at);
    read(Math.max(0, Math.min(times.length - 1, at + step)));
  });
}
