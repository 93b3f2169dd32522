// A pod's score table, and the switch that records such tables, with what it costs.

import { path, read, watch } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { count } from "./format.js";
import { clock, nodeLink, section, source } from "./parts.js";

const FLAG = "/debug/flags/s";
const ROWS = 10;

/** Makes the part of a pod's view that shows its scores. */
export function scores(name) {
  const target = path("apis", "v1", "scores", name);
  const body = h("div");
  const element = h("div", { hidden: true }, section("Scores", body));
  const state = { flag: null, answer: null, trouble: "" };
  const draw = () => {
    const { flag, answer, trouble } = state;
    if (!answer) return;
    const seen = [flag, trouble, answer.ok ? { rows: answer.body.rows, chosen: answer.body.chosen, at: answer.body.meta?.decidedAt } : answer.status];
    whenChanged(body, seen, () => put(body, answer.ok ? table(answer.body) : none(flag), control(flag, set), trouble && h("p", { class: "error", role: "alert" }, trouble), source(target)));
  };
  const set = async (value) => {
    const done = await read(FLAG, { method: "PUT", data: String(value) });
    state.trouble = done.ok ? "" : done.message;
    flags.again();
    draw();
  };
  const table_ = watch(target, 4000, (answer) => {
    state.answer = answer;
    draw();
  });
  const flags = watch(FLAG, 8000, (answer) => {
    if (answer.ok) state.flag = Number.parseInt(answer.body, 10);
    draw();
  });
  return {
    element,
    toggle: (shown) => { element.hidden = !shown; },
    stop() {
      table_.stop();
      flags.stop();
    },
  };
}

function none(flag) {
  const text = flag > 0
    ? "No table of this pod: it has not been scored since recording began, or no node was feasible."
    : "Score tables are not recorded now.";
  return h("p", {}, text);
}

function control(flag, set) {
  if (flag === null || Number.isNaN(flag)) return null;
  if (flag > 0) {
    return h("p", { class: "control" },
      h("button", { type: "button", "data-key": "scores off", onclick: () => set(0) }, "Stop recording"),
      h("span", { class: "quiet" }, `Recording the best ${flag} nodes of every pod that is scored.`));
  }
  return h("p", { class: "control" },
    h("button", { type: "button", class: "primary", "data-key": "scores on", onclick: () => set(ROWS) }, "Record score tables"),
    h("span", { class: "quiet" }, `What it costs: for every pod scored from then on, by any user, the best ${ROWS} nodes are kept in memory and written to the log, up to a tenth of the time of a cycle. Set flag s to ${ROWS}; it stays on until it is stopped.`));
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
