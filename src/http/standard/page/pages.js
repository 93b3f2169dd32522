// A list that the server cuts into pages, as a table: the first page follows the cluster, later ones are of the state
// that the walk began with.

import { watch } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { count } from "./format.js";
import { failure, source } from "./parts.js";

const EVERY = 4000;
const ROWS = 50;

/** Shows in `element` the list at `target()`, a path with a query, whose items lie in the field `array`. `columns` are
 * `[title, draw, class]`. `head(body)` is drawn above the table. Returns `{stop, restart}`. */
export function pages(element, { target, array, columns, what, head = () => null }) {
  /** Tokens of the pages so far; the first page has none. */
  let tokens = [""];
  /** Number of the first row of each page. */
  let from = [0];
  const go = (next, first) => {
    [tokens, from] = [next, first];
    watched.restart();
  };
  const first = () => go([""], [0]);
  const path = () => `${target()}&limit=${ROWS}${tokens.at(-1) ? `&continue=${encodeURIComponent(tokens.at(-1))}` : ""}`;
  const watched = watch(path, EVERY, (answer) => {
    // The state of the walk is not kept any more.
    if (!answer.ok && tokens.length > 1) return first();
    if (!answer.ok && element.childElementCount && answer.status !== 404) return;
    const { meta, ...seen } = answer.ok ? answer.body : answer;
    whenChanged(element, [seen, tokens.length], () => put(element, answer.ok ? [head(answer.body), table(answer.body)] : failure(answer, what), source(path())));
  });
  const table = (body) => {
    const items = body[array] ?? [];
    if (!items.length) return h("p", { class: "quiet" }, "None.");
    return [
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": what },
        h("table", { class: "list" },
          h("thead", {}, h("tr", {}, columns.map(([title, , kind]) => h("th", { scope: "col", class: kind }, title)))),
          h("tbody", {}, items.map((item) => h("tr", {}, columns.map(([, draw, kind], at) => h(at ? "td" : "th", { scope: at ? null : "row", class: kind }, draw(item)))))))),
      walk(body, items.length),
    ];
  };
  const walk = ({ count: total = 0, meta = {} }, n) => {
    const start = from.at(-1);
    if (total <= n && tokens.length === 1) return null;
    const button = (title, isOn, act) => h("button", { type: "button", disabled: !isOn, "data-key": `page ${title}`, onclick: act }, title);
    return h("nav", { class: "walk", "aria-label": `Pages of ${what}` },
      button("First", tokens.length > 1, first),
      button("Previous", tokens.length > 1, () => go(tokens.slice(0, -1), from.slice(0, -1))),
      button("Next", Boolean(meta.continue), () => go([...tokens, meta.continue], [...from, start + n])),
      h("span", { class: "quiet", role: "status" }, `${count(start + 1)} to ${count(start + n)} of ${count(total)}${tokens.length > 1 ? ", as it was when you left the first page" : ""}`));
  };
  return { stop: watched.stop, restart: first };
}
