// "Try this": a fix is simulated on a copy of the cluster, and compared with what would happen without it.

import { post } from "./api.js";
import { h, put } from "./dom.js";
import { count, plural } from "./format.js";
import { chip, nodeLink, podLink } from "./parts.js";

const SIMULATE = "/apis/v1/simulate";
const SHOWN = 20;

/** Creates the button that tries a fix, and the place for what it changes. `subject` is the field of the request that
 * names the pod or gang: `{include: […]}` or `{includeGangs: […]}`. */
export function trial(edits, subject) {
  const result = h("div", { class: "trial", role: "status" });
  const button = h("button", { type: "button", "data-key": `try ${JSON.stringify(edits)}`, onclick: () => run() }, "Try this");
  const run = async () => {
    button.disabled = true;
    put(result, h("p", { class: "quiet" }, "trying …"));
    const [without, within] = [await post(SIMULATE, { edits: [], ...subject }), await post(SIMULATE, { edits, ...subject })];
    button.disabled = false;
    const failed = [without, within].find((answer) => !answer.ok);
    put(result, failed ? h("p", { class: "error" }, failed.message) : difference(without.body, within.body));
  };
  return h("div", { class: "fix-note" }, button, " ", h("span", { class: "quiet" }, "on a copy of the cluster; nothing is changed"), result);
}

/** Draws where each pod is without and with the fix, who would be evicted, and what it means for gangs. */
function difference(without, within) {
  const places = (body) => new Map(body.placements.map((one) => [one.pod, one.node]));
  const why = (body) => new Map(body.refused.map((one) => [one.pod, one.summary]));
  const [before, after] = [without, within].map((body) => ({ places: places(body), why: why(body) }));
  const names = [...new Set([before, after].flatMap((one) => [...one.places.keys(), ...one.why.keys()]))].sort();
  const changed = names.filter((name) => before.places.get(name) !== after.places.get(name));
  const cell = (one, name) => (one.places.has(name) ? nodeLink(one.places.get(name)) : h("span", { title: one.why.get(name) }, "no place"));
  return [
    h("p", {}, changed.length ? `It changes where ${plural(changed.length, "pod")} of ${count(names.length)} ${changed.length === 1 ? "goes" : "go"}.` : "It changes nothing for these pods now."),
    names.length > 0 && h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "What the fix changes" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Pod", "Without it", "With it"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, [...changed, ...names.filter((name) => !changed.includes(name))].slice(0, SHOWN).map((name) =>
        h("tr", { class: changed.includes(name) ? "chosen" : "" }, h("th", { scope: "row" }, podLink(name)), h("td", {}, cell(before, name)), h("td", {}, cell(after, name))))))),
    names.length > SHOWN && h("p", { class: "quiet" }, `and ${count(names.length - SHOWN)} more`),
    within.gangs.map((gang) => h("p", {}, gang.gang, " ", chip(`${count(gang.placed)} placed of ${count(gang.min)} needed`, gang.hasQuorum ? "good" : "bad"))),
    within.victims.length > 0 && h("p", {}, chip("evicts", "bad"), " ", within.victims.slice(0, SHOWN).flatMap((one, at) => [at > 0 && ", ", podLink(one.pod)])),
    after.why.size > 0 && h("p", { class: "quiet" }, [...after.why.values()][0]),
  ];
}
