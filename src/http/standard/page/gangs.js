// The gangs as cards, cut into pages by the server: those that want something first, then those that have their quorum
// or are over. Which gangs wait for each other is said elsewhere (deadlock.js).

import { watchServed } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { count, plural } from "./format.js";
import { quorum } from "./gang.js";
import { chip, clock, failure, link, source, tone } from "./parts.js";

const GANGS = "/apis/v1/explain/gangs";
const FIELDS = "namespace,name,state,counts,min,waitEnds";
const EVERY = 4000;
/** Cards on the first page of each list, and how many more a press adds. */
const [WANTING, SETTLED, MORE] = [24, 6, 48];
/** States in the order of their cards. */
const STATES = {
  wanting: ["Waiting", "Released", "Unschedulable", "PartiallyBound", "Queued", "Gated"],
  settled: ["Placed", "Running", "Finished", "Empty"],
};

/** Shows the gangs in `element`. Calls `shown` when there is something to see. Returns `{stop}`. */
export function gangCards(element, shown) {
  const lists = {
    wanting: { limit: WANTING, answer: null },
    settled: { limit: SETTLED, answer: null },
  };
  const target = (name) => `${GANGS}?stage=${STATES[name].join(",")}&sort=-stage,namespace,name&fields=${FIELDS}&limit=${lists[name].limit}`;
  const draw = () => {
    const { wanting, settled } = lists;
    if (!wanting.answer || !settled.answer) return;
    const broken = [wanting, settled].find((list) => !list.answer.ok);
    const seen = broken ? broken.answer : [wanting, settled].map(({ answer, limit }) => [answer.body.gangs, answer.body.count, limit]);
    whenChanged(element, seen, () => put(element, broken ? failure(broken.answer, "list of gangs") : [cards("wanting"), cards("settled"), none(), source(target("wanting"))]));
    shown();
  };
  const cards = (name) => {
    const { answer, limit } = lists[name];
    const { gangs = [], count: all = gangs.length } = answer.body;
    if (!gangs.length) return null;
    const rank = (gang) => STATES[name].indexOf(gang.state);
    const sorted = [...gangs].sort((a, b) => rank(a) - rank(b) || (nameOf(a) < nameOf(b) ? -1 : 1));
    const left = all - gangs.length;
    const more = () => {
      lists[name].limit = limit + MORE;
      lists[name].watched.restart();
    };
    const title = name === "wanting" ? `${plural(all, "gang")} without ${all === 1 ? "its" : "their"} quorum in place` : `${plural(all, "gang")} placed, running or over`;
    return [
      h("h4", {}, title),
      h("ul", { class: "gangs", "aria-label": title }, sorted.map(card)),
      left > 0 && h("p", { class: "walk" }, h("button", { type: "button", "data-key": `more gangs ${name}`, onclick: more }, `${count(Math.min(MORE, left))} more of ${plural(left, "gang")}`)),
    ];
  };
  const none = () => lists.wanting.answer.body.count + lists.settled.answer.body.count === 0 && h("p", { class: "quiet" }, "There are none.");
  for (const name of Object.keys(lists)) {
    lists[name].watched = watchServed(GANGS, () => target(name), EVERY, (answer) => {
      // What was shown stays while the scheduler is busy.
      if (!answer.ok && answer.status !== 404 && lists[name].answer?.ok) return;
      lists[name].answer = answer;
      draw();
    });
  }
  return { stop: () => Object.values(lists).forEach(({ watched }) => watched.stop()) };
}

const nameOf = ({ namespace, name }) => `${namespace}/${name}`;

function card(gang) {
  const name = nameOf(gang);
  return h("li", {},
    h("a", { href: link("gangs", name), "data-key": `gang ${name}`, "data-gang": name },
      h("span", { class: "gang-name" }, name), chip(gang.state, tone(gang.state))),
    quorum(gang.counts ?? {}, gang.min ?? 0),
    gang.waitEnds && h("p", { class: "deadline" }, "first place given up in ", clock(gang.waitEnds, "until")));
}
