// View of the reservations: a table of what each holds and has left, or one with who stands in its room, who could, and
// where its verdict is while it waits.

import { path, watchServed } from "./api.js";
import { h, put, whenChanged } from "./dom.js";
import { plural } from "./format.js";
import { chip, facts, failure, head, link, nodeLink, podLink, section, source } from "./parts.js";

export const STATE = "/apis/v1/plugins/Reservation/state";
const ALL = "/apis/v1/plugins/Reservation/reservations";
const LONGEST = 200;
const EVERY = 4000;
const TONES = { Available: "good", Pending: "wait", Failed: "bad" };

/** Shows all reservations in `view`, or the one of this name. Returns a function that ends the view. */
export function show(view, name) {
  const body = h("div");
  put(view, body);
  const target = name ? path("apis", "v1", "plugins", "Reservation", "reservations", name) : `${ALL}?limit=${LONGEST}`;
  const watched = watchServed(name ? `${ALL}/:name` : ALL, target, EVERY, (answer) => {
    if (!answer.ok && body.childElementCount && answer.status !== 404) return;
    const { meta, ...seen } = answer.ok ? answer.body : answer;
    const title = head(name ? "reservation" : "room that is kept", name || "Reservations", answer.ok && name && chip(answer.body.phase, TONES[answer.body.phase]));
    whenChanged(body, seen, () => put(body, title, !answer.ok ? failure(answer, "reservation") : name ? one(answer.body) : list(answer.body), source(target)));
  });
  return () => watched.stop();
}

const amounts = (of) => Object.entries(of ?? {}).map(([resource, amount]) => `${resource} ${amount}`).join(", ") || "–";

const named = (name) => h("a", { href: link("reservations", name), "data-key": `reservation ${name}` }, name);

function table(label, titles, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", {},
      h("thead", {}, h("tr", {}, titles.map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first), rest.map((cell) => h("td", {}, cell)))))));
}

function list({ items = [], truncated }) {
  if (!items.length) return h("p", { class: "quiet" }, "There are no reservations.");
  const row = (of) => [named(of.name), chip(of.phase, TONES[of.phase]), of.node ? nodeLink(of.node) : "–", amounts(of.allocatable), amounts(of.left), plural(of.owners, "pod"), of.expires ?? "never"];
  return [
    table("Reservations", ["Reservation", "Phase", "Node", "Holds", "Left", "In its room", "Expires"], items.map(row)),
    truncated && h("p", { class: "quiet" }, "There are more reservations than are shown."),
  ];
}

function one(of) {
  const owners = (of.currentOwners ?? []).map((pod) => [podLink(`${pod.Namespace}/${pod.Name}`), amounts(pod.Requests)]);
  const waiting = (of.candidates ?? []).map(({ pod, reason }) => [podLink(pod), reason]);
  const [, verdict] = /^\/apis\/v1\/explain\/pods\/(.+)$/.exec(of.explanation ?? "") ?? [];
  return [
    of.message && h("p", {}, of.message),
    verdict && h("p", {}, "It is judged as a pod is: ", podLink(verdict)),
    section("About it", facts([
      ["node", of.node && nodeLink(of.node)],
      ["holds", amounts(of.allocatable)],
      ["left", amounts(of.left)],
      ["allocatePolicy", of.allocatePolicy || "Default"],
      ["owners", of.allocateOnce ? "one uses it up" : "come and go"],
      ["expires", of.expires ?? "never"],
    ])),
    section("In its room", owners.length ? table("Pods in its room", ["Pod", "Requests"], owners) : h("p", { class: "quiet" }, "Nobody.")),
    waiting.length > 0 && section("Owners that wait", table("Owners that wait", ["Pod", "What keeps it from the reservation"], waiting), of.candidatesTruncated && h("p", { class: "quiet" }, "There are more.")),
  ];
}
