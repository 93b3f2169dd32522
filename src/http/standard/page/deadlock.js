// Gangs that wait for each other: who holds what the next one lacks, and when a deadline breaks the circle.

import { h } from "./dom.js";
import { clock, link } from "./parts.js";

/** Path that says which gangs hold what others lack, and the circles among them. */
export const INTERFERENCE = "/apis/v1/gangs/interference";

/** Creates a link to a gang. */
export const gangLink = (name, key = "gang") => h("a", { href: link("gangs", name), "data-key": `${key} ${name}` }, name);

/** Says in a sentence that the gangs of a cycle wait for each other, what each holds of the others, and what ends it. */
export function deadlock({ gangs, breaksAt }, edges) {
  const within = edges.filter((edge) => gangs.includes(edge.holder) && gangs.includes(edge.waiter));
  return [
    h("strong", {}, listed(gangs.map((name) => gangLink(name, "deadlock"))), " wait for each other."), " ",
    within.map((edge) => [`${edge.holder} holds ${heldBy(edge)} that ${edge.waiter} lacks. `]),
    breaksAt
      ? ["The first wait runs out in ", clock(breaksAt, "until"), "; until then none of them goes on, unless room becomes free."]
      : "No deadline ends it: it lasts until room becomes free or one of them goes.",
  ];
}

/** Returns what the holder of an edge has of what the other one lacks. */
export function heldBy({ resources = [], heldText = {} }) {
  return resources.map((name) => (heldText[name] ? `${heldText[name]} ${name}` : name)).join(", ") || "room";
}

const listed = (items) => items.flatMap((item, at) => (at === 0 ? [item] : [at === items.length - 1 ? " and " : ", ", item]));
