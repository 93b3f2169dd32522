// Polls the REST API with little load: one request in flight per watcher, none while the tab is hidden, fewer when a
// response is costly, and with growing pauses when the scheduler is busy or unreachable.

import { credentials, signIn, wants } from "./sign_in.js";

const PATIENCE = 15_000;
const LONGEST_PAUSE = 30_000;
/** Maximum share of time that requests for one path of this page may take. */
const SHARE = 1 / 25;

const watchers = new Set();
const troubles = new Map();
const listeners = new Set();
let offset = 0;
let lastHeard = 0;
let generation = 0;

/** Returns the scheduler's time in milliseconds, estimated from its responses. */
export const now = () => Date.now() + offset;

/** Calls `listener` with the state of the connection after every response. */
export function onHealth(listener) {
  listeners.add(listener);
}

function tellHealth() {
  const worst = [...troubles.values()].sort((a, b) => a.status - b.status)[0] ?? null;
  for (const listener of listeners) listener({ trouble: worst, lastHeard, generation });
}

/** Joins and encodes the parts of a path. */
export const path = (...parts) => "/" + parts.flatMap((part) => part.split("/")).map(encodeURIComponent).join("/");

/** Sends one request, again once the user has said who asks if that is wanted. Resolves to
 * `{ok, status, body, code, message}`; throws only when the caller aborts it. */
export async function read(target, options = {}) {
  for (;;) {
    const asked = JSON.stringify(credentials());
    const answer = await once(target, options);
    // Another request may have asked the user meanwhile.
    if (asked !== JSON.stringify(credentials()) && [401, 403].includes(answer.status)) continue;
    if (!wants(answer)) return answer;
    await signIn(answer.message, options.signal);
  }
}

async function once(target, { signal, method = "GET", data, type = "application/json", sends = "text/plain" }) {
  const limit = AbortSignal.timeout(PATIENCE);
  const headers = { ...credentials(), ...(data === undefined ? { accept: type } : { "content-type": sends }) };
  try {
    const response = await fetch(target, {
      method, headers, body: data, cache: "no-store", credentials: "omit",
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
    const text = await response.text();
    const isJson = (response.headers.get("content-type") ?? "").startsWith("application/json");
    const body = isJson ? JSON.parse(text) : text;
    heard(body);
    if (response.ok) return { ok: true, status: response.status, body };
    const retryAfter = Number(response.headers.get("retry-after")) * 1000 || 0;
    return { ok: false, status: response.status, retryAfter, code: body?.code ?? "", message: body?.message ?? text };
  } catch (error) {
    if (signal?.aborted) throw error;
    const message = limit.aborted ? `no answer within ${PATIENCE / 1000} s` : "no answer";
    return { ok: false, status: 0, retryAfter: 0, code: "NoAnswer", message };
  }
}

function heard(body) {
  lastHeard = Date.now();
  const at = Date.parse(body?.meta?.generatedAt);
  // Ignore clock differences of half a second or less.
  if (!Number.isNaN(at) && Math.abs(at - lastHeard - offset) > 500) offset = at - lastHeard;
  generation = Math.max(generation, body?.meta?.snapshotGeneration ?? 0);
}

let services;

/** Returns whether this scheduler serves a path template; older versions lack some. True when that is unknown. */
export async function serves(template) {
  services ??= read("/apis/v1/__services__");
  const answer = await services;
  if (!answer.ok) services = undefined;
  return !answer.ok || (answer.body.GET ?? []).includes(template);
}

/** Sends JSON to `target`. Resolves as `read` does. */
export const post = (target, body) => read(target, { method: "POST", data: JSON.stringify(body), sends: "application/json" });

/** Polls `target`, which may be a function, and passes each response to `tell`. Returns `{stop, again, restart}`:
 * `again` asks now unless a request is under way, `restart` gives that one up and asks for what `target` is now. */
export function watch(target, every, tell) {
  const watcher = { timer: 0, running: false, stopped: false, failures: 0, abort: new AbortController() };
  const name = () => (typeof target === "function" ? target() : target);
  watcher.ask = async () => {
    clearTimeout(watcher.timer);
    if (watcher.stopped || watcher.running || document.hidden) return;
    watcher.running = true;
    const began = performance.now();
    let answer;
    const { signal } = watcher.abort;
    try {
      answer = await read(name(), { signal });
    } catch {
      return;
    } finally {
      if (signal === watcher.abort.signal) watcher.running = false;
    }
    if (watcher.stopped || signal.aborted) return;
    const pause = judge(watcher, answer, every, performance.now() - began);
    watcher.timer = setTimeout(watcher.ask, pause);
    tell(answer);
    tellHealth();
  };
  watchers.add(watcher);
  watcher.ask();
  return {
    again: watcher.ask,
    restart() {
      watcher.abort.abort();
      [watcher.abort, watcher.running] = [new AbortController(), false];
      watcher.ask();
    },
    stop() {
      watcher.stopped = true;
      clearTimeout(watcher.timer);
      watcher.abort.abort();
      watchers.delete(watcher);
      if (troubles.delete(watcher)) tellHealth();
    },
  };
}

/** Does the same once it is known that this scheduler serves the path `template`. Returns `{stop, restart}`. */
export function watchServed(template, target, every, tell) {
  let watched = null;
  let left = false;
  serves(template).then((served) => {
    if (served && !left) watched = watch(target, every, tell);
  });
  return {
    restart: () => watched?.restart(),
    stop() {
      left = true;
      watched?.stop();
    },
  };
}

/** Records the outcome of a response, and returns the pause before the next request in milliseconds. */
function judge(watcher, answer, every, took) {
  if (answer.ok || (answer.status >= 400 && answer.status < 429)) {
    watcher.failures = 0;
    troubles.delete(watcher);
    // An unknown path will not be served soon.
    return answer.code === "UnknownPath" ? 60_000 : Math.max(every, took / SHARE);
  }
  watcher.failures += 1;
  const growing = Math.min(LONGEST_PAUSE, (answer.status === 0 ? 1000 : 2000) * 2 ** (watcher.failures - 1));
  const pause = Math.max(growing, answer.retryAfter);
  troubles.set(watcher, { status: answer.status, message: answer.message, again: Date.now() + pause });
  return pause;
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) for (const watcher of watchers) watcher.ask();
});

/** Polls everything at once. */
export function askAll() {
  for (const watcher of watchers) watcher.ask();
}
