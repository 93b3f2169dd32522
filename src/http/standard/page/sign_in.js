// Asks for a token where the scheduler wants to know who asks, and for namespaces where the user may not see everything.
// Both are kept in memory only: they are gone with the page.

import { h } from "./dom.js";

let token = "";
let namespaces = "";
let asking = null;

/** Returns the headers that say who asks. */
export const credentials = () => ({
  ...(token && { authorization: `Bearer ${token}` }),
  ...(namespaces && { "x-pellucid-namespaces": namespaces }),
});

/** Returns whether an answer says that somebody has to sign in, or has to name namespaces. */
export const wants = (answer) => answer.status === 401 || (answer.status === 403 && answer.code === "Forbidden" && !namespaces);

/** Asks, once for all who wait. Resolves when there is something new to try; throws when `signal` aborts. */
export function signIn(message, signal) {
  asking ??= ask(message).finally(() => {
    asking = null;
  });
  if (!signal) return asking;
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    asking.then(resolve, reject);
  });
}

function ask(message) {
  return new Promise((resolve) => {
    const field = (name, type, value) => h("input", { name, type, value, autocomplete: "off", spellcheck: "false" });
    const [secret, names] = [field("token", "password", token), field("namespaces", "text", namespaces)];
    const form = h("form", { method: "dialog" },
      h("h2", {}, "Who asks?"),
      h("p", { role: "alert" }, message),
      h("p", {}, h("label", {}, "Token ", secret)),
      h("p", {}, h("label", {}, "Namespaces, with commas, if you may not see everything ", names)),
      h("p", { class: "quiet" }, "Such as kubectl create token gives. It is kept in memory until this page is left."),
      h("button", { type: "submit" }, "Go on"));
    const dialog = h("dialog", { id: "sign-in", "aria-label": "Who asks?" }, form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      [token, namespaces] = [secret.value.trim(), names.value.replaceAll(" ", "")];
      dialog.remove();
      resolve();
    });
    // Nothing can be shown without an answer.
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    document.body.append(dialog);
    dialog.showModal();
    (token ? names : secret).focus();
  });
}
