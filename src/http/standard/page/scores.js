// A pod's score table, and the switch that records such tables, with its cost.

import { path, read, serves, watch } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { count } from "./format.js";
import { clock, nodeLink, section, source } from "./parts.js";

const FLAG = "/debug/flags/s";
const DEBUG = "/apis/v1/debug";
const ROWS = 10;
const MINUTES = 10;
const RECORDS = 1000;

/** Creates the part of a pod's view that shows its scores. It is hidden while there are none, unless they are `offered`. */
export function scores(name, offered) {
  const target = path("apis", "v1", "scores", name);
  const body = h("div");
  const element = section("Scores", body);
  element.hidden = !offered;
  const state = { recording: null, answer: null, trouble: "", stopped: false, switches: null };
  const draw = () => {
    const { recording, answer, trouble } = state;
    if (!answer) return;
    element.hidden = !answer.ok && !offered;
    const seen = [recording, trouble, answer.ok ? { rows: answer.body.rows, chosen: answer.body.chosen, at: answer.body.meta?.decidedAt } : answer.status];
    whenChanged(body, seen, () => put(body, answer.ok ? table(answer.body) : none(recording), control(recording, order), trouble && h("p", { class: "error", role: "alert" }, trouble), source(target)));
  };
  const order = async (...values) => {
    for (const value of values) {
      const done = await read(FLAG, { method: "PUT", data: value });
      state.trouble = done.ok ? "" : done.message;
    }
    state.switches?.again();
    draw();
  };
  const tables = watch(target, 4000, (answer) => {
    state.answer = answer;
    draw();
  });
  serves(DEBUG).then((expires) => {
    if (state.stopped) return;
    state.switches = watch(expires ? DEBUG : FLAG, 8000, (answer) => {
      if (answer.ok) state.recording = expires ? recordings(answer.body) : plain(answer.body);
      draw();
    });
  });
  return {
    element,
    stop() {
      state.stopped = true;
      tables.stop();
      state.switches?.stop();
    },
  };
}

/** Returns the recording state of a scheduler whose flag has only a value. */
function plain(text) {
  const rows = Number.parseInt(text, 10) || 0;
  return { rows, until: null, on: String(ROWS), off: ["0"], all: true };
}

/** Returns the recording state of a scheduler whose recordings expire. */
function recordings({ active = [] }) {
  const own = active.filter((one) => one.flag === "s" && one.active && one.value !== "0");
  const widest = own.sort((a, b) => Number(b.value) - Number(a.value))[0];
  const off = own.map((one) => (one.id === 0 ? "0" : JSON.stringify({ id: one.id, off: true })));
  const on = JSON.stringify({ value: ROWS, ttlSeconds: MINUTES * 60, maxRecords: RECORDS, owner: "page" });
  const all = !widest || Object.keys(widest.scope ?? {}).length === 0;
  return { rows: Number(widest?.value) || 0, until: widest?.expiresAt ?? null, on, off, all, ends: true };
}

function none(recording) {
  const text = recording?.rows > 0
    ? "No table of this pod: it has not been scored since recording began, or no node was feasible."
    : "Score tables are not recorded now.";
  return h("p", {}, text);
}

function control(recording, order) {
  if (!recording) return null;
  const { rows, until, on, off, all, ends } = recording;
  if (rows > 0) {
    return h("p", { class: "control" },
      h("button", { type: "button", "data-key": "scores", onclick: () => order(...off) }, "Stop recording"),
      h("span", { class: "quiet" }, `Recording the best ${rows} nodes of ${all ? "every pod" : "some pods"} that ${all ? "is" : "are"} scored`, until && [", for another ", clock(until, "until")], "."));
  }
  const end = ends ? `It ends by itself after ${MINUTES} minutes or ${count(RECORDS)} tables.` : "It stays on until it is stopped.";
  return h("p", { class: "control" },
    h("button", { type: "button", class: "primary", "data-key": "scores", onclick: () => order(on) }, "Record score tables"),
    h("span", { class: "quiet" }, `What it costs: up to a tenth of the scheduler's time while it is on. The best ${ROWS} nodes of every pod scored from then on are kept in memory, and written to the log. ${end}`));
}

function table({ rows = [], chosen, feasibleNodes, tieRule, meta = {} }) {
  const plugins = (rows[0]?.plugins ?? []).filter((one) => rows.some((row) => row.plugins.some((p) => p.plugin === one.plugin && !p.skipped)));
  const cell = (row, name) => row.plugins.find((one) => one.plugin === name);
  return [
    h("p", { class: "quiet" }, `Best ${rows.length} of ${count(feasibleNodes ?? rows.length)} feasible nodes`, meta.decidedAt && [", decided ", clock(meta.decidedAt), " ago"], "."),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Score table" },
      h("table", { class: "scores" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Node"), h("th", { scope: "col", class: "n" }, "Total"),
          plugins.map(({ plugin, weight }) => h("th", { scope: "col", class: "n" }, h("span", {}, plugin), h("small", {}, `× ${weight}`))))),
        h("tbody", {}, rows.map((row) => h("tr", { class: row.node === chosen ? "chosen" : "" },
          h("th", { scope: "row" }, nodeLink(row.node), row.node === chosen && h("small", {}, " chosen")),
          h("td", { class: "n total" }, count(row.total)),
          plugins.map(({ plugin }) => scored(cell(row, plugin)))))))),
    tieRule && h("p", { class: "quiet" }, `Ties: ${tieRule}.`),
  ];
}

function scored(one) {
  if (!one || one.skipped) return h("td", { class: "n quiet", title: "skipped" }, "–");
  const title = `raw ${one.raw}, normalised ${one.normalized}, weight ${one.weight}`;
  return h("td", { class: "n", title }, count(one.weighted));
}
