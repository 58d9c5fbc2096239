// Lists and watches, as an informer does: list, watch from there, list again when the version has expired.

// A server sends a bookmark every 30 seconds. A watch without any has lost its server, even if nobody has said so.
export const silence = 90000;
const longestPause = 10000;

const pause = (ms, signal) => new Promise((resolve) => {
  const end = () => { clearTimeout(timer); signal.removeEventListener("abort", end); resolve(); };
  const timer = setTimeout(end, ms);
  signal.addEventListener("abort", end);
});

// RequestError is an answer that is not a success; its message is that of the cluster.
export class RequestError extends Error {
  constructor(code, message) { super(message); this.code = code; }
}

async function request(url, signal) {
  const response = await fetch(url, { signal, redirect: "error" });
  if (response.ok) return response;
  const text = await response.text();
  let message = text.trim();
  try { message = JSON.parse(text).message || message; } catch { /* The message is plain text. */ }
  throw new RequestError(response.status, message || response.statusText);
}

export async function read(path, query, signal) {
  return (await request(`${path}?${new URLSearchParams(query)}`, signal)).json();
}

async function list(path, query, signal) {
  const items = [];
  for (let next = "", version = null; ;) {
    const page = await read(path, { ...query, limit: 500, ...(next && { continue: next }) }, signal);
    for (const o of page.items ?? []) items.push(o);
    version ??= page.metadata.resourceVersion; // What changes while later pages are read comes as an event.
    next = page.metadata.continue;
    if (!next) return { items, version };
  }
}

// lines yields the lines of an answer, and throws when nothing comes for too long.
async function* lines(body, signal) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    let rest = "";
    for (;;) {
      const { value, done } = await readInTime(reader);
      if (done) return;
      const complete = (rest + value).split("\n");
      rest = complete.pop();
      for (const line of complete) if (line) yield line;
      if (signal.aborted) return;
    }
  } finally {
    reader.cancel().catch(() => { /* The connection has gone. */ });
  }
}

async function readInTime(reader) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Nothing was received for ${silence / 1000} s.`)), silence);
  });
  try { return await Promise.race([reader.read(), late]); } finally { clearTimeout(timer); }
}

// follow calls on.listed with all objects, on.changed with each event, and on.connected with null or an error, until the signal.
export async function follow(path, query, signal, on) {
  let version = null, failures = 0;
  while (!signal.aborted) {
    try {
      if (version === null) {
        const all = await list(path, query, signal);
        on.listed(all.items);
        version = all.version;
      }
      const watch = { ...query, watch: 1, allowWatchBookmarks: true, timeoutSeconds: 240 + Math.floor(Math.random() * 60), resourceVersion: version };
      const response = await request(`${path}?${new URLSearchParams(watch)}`, signal);
      const began = Date.now();
      on.connected(null);
      for await (const line of lines(response.body, signal)) {
        const { type, object } = JSON.parse(line);
        if (type === "ERROR") throw new RequestError(object.code ?? 500, object.message ?? "The watch has failed.");
        failures = 0;
        version = object.metadata.resourceVersion;
        if (type !== "BOOKMARK") on.changed(type, object);
      }
      // The watch has reached its time limit, or the server ends. One that does so at once must not be asked all the time.
      if (Date.now() - began < 1000) await pause(Math.min(500 * 2 ** failures++, longestPause), signal);
    } catch (error) {
      if (signal.aborted) return;
      // A list decides again after an expired version, a refusal, or an event that nobody understands.
      if (!isNetwork(error)) version = null;
      if (error.code !== 410) on.connected(error);
      await pause(Math.min(500 * 2 ** failures++, longestPause), signal);
    }
  }
}

// isNetwork reports whether a request may go on from where it was when it has another connection.
const isNetwork = (error) => error.code === undefined && !(error instanceof SyntaxError) || error.code === 502;
