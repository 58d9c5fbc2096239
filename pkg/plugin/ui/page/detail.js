// The panel of one cell: what the server answered for an object, beside what is declared; or of an object with all servers.

import { $, clock, duration, element, setText } from "./dom.js";
import { comparisonOf, isSilent, keyOf, lagText, serverName, serversOf, symbol, titleOf } from "./model.js";
import { read } from "./watch.js";

// Times and serials of an unchanged verdict are fresh only in an answer to a request for the object.
const refreshEvery = 5000;
const noticedSkew = 10000; // milliseconds between the clocks of the browser and the cluster that are worth a word
const maxEvents = 20;

export class Detail {
  // zoneOf returns the zone that is shown, seen when the page saw a server of an object change its state, if it did.
  constructor(api, zoneOf, seen) {
    Object.assign(this, { api, zoneOf, seen, of: null });
    this.panel = $("detail");
    setInterval(() => { if (!document.hidden) this.refresh(); }, refreshEvery);
  }

  // open shows an object, on one server if server is the key of one.
  open(object, server) {
    this.of?.abort.abort();
    this.of = { object, server, events: null, problem: null, version: object.metadata.resourceVersion, abort: new AbortController() };
    $("detail-body").replaceChildren(this.facts = element("dl"), element("h3", {}, "Declared and served"), this.compared = element("div"),
      element("h3", {}, "Events"), this.events = element("div"));
    this.draw();
    this.panel.hidden = false;
    this.panel.scrollIntoView({ block: "nearest" });
    $("detail-heading").focus();
    this.refresh();
  }

  close() {
    this.of?.abort.abort();
    this.of = null;
    this.panel.hidden = true;
  }

  // changed takes an object as a watch has it.
  changed(now) {
    if (!this.of) return;
    if (now && now.metadata.resourceVersion !== this.of.version) {
      Object.assign(this.of, { object: now, version: now.metadata.resourceVersion });
      this.draw();
      this.refresh();
    } else if (!now && !this.of.gone) {
      this.of.gone = true;
      this.draw();
    }
  }

  async refresh() {
    const of = this.of;
    if (!of || of.reading || of.gone) return;
    of.reading = true;
    const { namespace, name } = of.object.metadata, signal = of.abort.signal;
    const [object, ...events] = await Promise.allSettled([
      read(`${this.api}/namespaces/${namespace}/syncstatuses/${name}`, {}, signal),
      ...this.eventSources(of).map(([ns, kind, object]) => read(`/api/v1/namespaces/${ns}/events`,
        { fieldSelector: `involvedObject.kind=${kind},involvedObject.name=${object}`, limit: 500 }, signal)),
    ]);
    of.reading = false;
    if (of !== this.of) return;
    of.problem = object.status === "fulfilled" ? null : object.reason;
    if (!of.problem) of.object = object.value;
    of.skew = of.problem || !of.object.observedAt ? 0 : Date.now() - new Date(of.object.observedAt);
    of.events = events.flatMap((e) => (e.status === "fulfilled" ? e.value.items ?? [] : []));
    of.eventProblem = events.find((e) => e.status === "rejected")?.reason ?? null;
    this.draw();
  }

  // eventSources returns namespace, kind and name of the objects whose events tell of this cell: the object and the server's instance.
  eventSources({ object, server }) {
    const { namespace } = object.metadata, ref = object.objectRef;
    const sources = [[ref.namespace || "default", ref.kind, ref.name]]; // Events of cluster-scoped objects are in default.
    const s = server && serversOf(object, this.zoneOf()).get(server);
    if (s?.instance && ref.kind !== "Bind9Instance") sources.push([s.namespace || namespace, "Bind9Instance", s.instance]);
    return sources;
  }

  draw() {
    const { object, server, gone, problem } = this.of;
    const s = server ? serversOf(object, this.zoneOf()).get(server) : undefined;
    const state = s ? s.state : object.status.phase;
    this.panel.dataset.state = state;
    setText($("detail-symbol"), symbol(state));
    setText($("detail-heading"), titleOf(object));
    setText($("detail-on"), [`${object.objectRef.kind} ${object.metadata.namespace}/${object.objectRef.name}`, s && `on ${serverName(s)}`].filter(Boolean).join(" "));
    setText($("detail-problem"), gone ? "The object is no more." : problem ? `Not current: ${problem.message}` : server && !s ? "This server is no longer one of this object." : this.skewText());
    $("detail-problem").hidden = !$("detail-problem").textContent;
    drawFacts(this.facts, s ? serverFacts(object, s, this.seen(keyOf(object), server)) : objectFacts(object));
    redraw(this.compared, [state, comparisonOf(object, s)], ([, rows]) => compare(rows, object, s));
    const { events, eventProblem } = this.of;
    redraw(this.events, [events, eventProblem?.message], () => eventList(events, eventProblem));
  }

  skewText() {
    const skew = this.of.skew ?? 0;
    // The evidence may be some seconds old. A clock that is behind cannot be explained by that.
    if (skew > -noticedSkew && skew < 10 * noticedSkew) return "";
    return `This machine's clock seems to be ${duration(Math.abs(skew))} ${skew > 0 ? "ahead of" : "behind"} the cluster's. Times here are those of the cluster.`;
  }

  key() { return this.of && keyOf(this.of.object); }
}

// behind returns since when a server's serial is behind. Both times are the cluster's, so this machine's clock does not matter.
function behind(o, s) {
  if (!s.behindSince) return undefined;
  const now = s.observedAt ?? o.observedAt;
  return now ? `${clock(s.behindSince)}, for ${duration(new Date(now) - new Date(s.behindSince))}` : clock(s.behindSince);
}

// since returns since when a server is in its state: as the page saw it, else as far as is known of the object.
function since(o, s, seen) {
  if (seen) return clock(seen);
  if (s.state === "InSync") return undefined;
  const propagated = (o.status.conditions ?? []).find((c) => c.type === "Propagated" && c.status !== "True");
  return propagated ? `${clock(propagated.lastTransitionTime)} or later: the object went out of sync then` : "before this page was opened";
}

// rounded returns a duration as Go prints it with three digits.
const rounded = (d) => d?.replace(/^(\d+\.\d+)(?=[a-zµ]+$)/, (n) => String(Number(Number(n).toPrecision(3))));

function pod(s) {
  if (s.provider) return undefined;
  return [s.podPhase || "does not exist", s.podPhase ? (s.podReady ? "ready" : "not ready") : null, s.restarts ? `${s.restarts} restarts` : null].filter(Boolean).join(", ");
}

function records({ inSync, outOfSync = 0, undeclared = 0, unknown = 0 }) {
  return [`${inSync} in sync`, `${outOfSync} not`, undeclared && `${undeclared} undeclared`, unknown && `${unknown} unknown`].filter(Boolean).join(", ");
}

const serverFacts = (o, s, seen) => [
  ["State", s.state], ["Since", since(o, s, seen)], ["Explanation", s.message], ["Shadowed by", s.shadowedBy],
  ["Security", [s.security, s.securityCause].filter(Boolean).join(": ")], ["Signatures expire", s.signaturesExpireAt && clock(s.signaturesExpireAt)],
  ["Answer", s.rcode && `${s.rcode}${s.authoritative ? ", authoritative" : ", without authority"}`],
  ["Serial", s.serial], ["Lag", lagText(s.serialLag)], ["Behind since", behind(o, s)], ["Expires", s.expiresAt && clock(s.expiresAt)],
  ["RRsets", s.records && records(s.records)], ["Role", s.role], ["Pod", pod(s)], ["Address", s.address], ["Read by", s.readBy],
  ["Round trip", rounded(s.rtt)], ["Observed", (s.observedAt ?? o.observedAt) && clock(s.observedAt ?? o.observedAt)],
];

const objectFacts = (o) => [
  ["Phase", o.status.phase], ["Reason", o.status.failureReason], ["Explanation", o.status.failureMessage],
  ["Servers", o.summary && `${o.summary.inSync} of ${o.summary.servers} in sync`],
  ...(o.status.conditions ?? []).map((c) => [c.type, c.status === "True" ? "yes" : `${c.status === "False" ? "no" : "unknown"}, ${c.reason}${c.message ? `: ${c.message}` : ""}`]),
  ...(o.nameServers ?? []).map((n) => ["Name server", `${n.name} → ${n.instances?.join(", ") || n.leadsTo}${n.message ? `: ${n.message}` : ""}`]),
  ["Cached until", o.cachesExpireAt && clock(o.cachesExpireAt)], ["Observed", o.observedAt && clock(o.observedAt)],
];

// drawFacts changes values in place while the names are the same.
function drawFacts(list, facts) {
  const known = facts.filter(([, value]) => value !== undefined && value !== "" && value !== null);
  const names = known.map(([name]) => name).join("\n");
  if (list.dataset.names !== names) {
    list.dataset.names = names;
    list.replaceChildren(...known.flatMap(([name]) => [element("dt", {}, name), element("dd")]));
  }
  const values = list.querySelectorAll("dd");
  known.forEach(([, value], i) => setText(values[i], String(value)));
}

const shown = new WeakMap();

// redraw replaces the content of a box when what it shows has changed.
function redraw(box, value, draw) {
  const text = JSON.stringify(value);
  if (shown.get(box) === text) return;
  shown.set(box, text);
  box.replaceChildren(draw(value));
}

function nothingToCompare(o, s) {
  if (s && isSilent(s)) return "The server shows no data of the zone.";
  return (s ? s.state : o.status.phase) !== "InSync" ? "Nothing that differs is known." : "Everything is served as declared.";
}

function compare(rows, o, s) {
  if (!rows.length) {
    return element("p", { class: "soft" }, nothingToCompare(o, s));
  }
  const cell = (text, className) => element("td", { class: className }, text);
  const wide = s ? { colspan: "2" } : {};
  return element("table", { class: "compare" },
    element("thead", {}, element("tr", {}, ...["Declared", ...(s ? ["Served"] : [])].map((t) => element("th", { scope: "col" }, t)))),
    ...rows.map((r) => element("tbody", {}, element("tr", {}, element("th", { scope: "rowgroup", ...wide }, r.key)),
      element("tr", {}, cell(r.declared), s ? cell(r.differs ? `≠ ${r.served}` : r.served, r.differs ? "differs" : r.served === r.declared ? undefined : "soft") : null))));
}

const timeOf = (e) => e.series?.lastObservedTime ?? e.lastTimestamp ?? e.eventTime ?? e.metadata.creationTimestamp;

function eventList(events, problem) {
  const box = element("div");
  if (!events) box.append(element("p", { class: "soft" }, "Loading"));
  if (problem) box.append(element("p", { class: "soft" }, `Not all events can be read: ${problem.message}`));
  else if (events?.length === 0) box.append(element("p", { class: "soft" }, "None in the last hour or so; Kubernetes forgets them."));
  const sorted = [...events ?? []].sort((a, b) => new Date(timeOf(b)) - new Date(timeOf(a))).slice(0, maxEvents);
  box.append(element("ul", { class: "events" }, ...sorted.map((e) => {
    const count = e.series?.count ?? e.count;
    return element("li", { "data-type": e.type === "Warning" ? "Warning" : undefined }, element("time", {}, clock(timeOf(e))), " ",
      element("b", {}, e.type === "Warning" ? `Warning ${e.reason}` : e.reason), count > 1 ? ` ×${count}` : "", element("span", {}, e.message ?? ""),
      element("small", {}, `${e.involvedObject?.kind ?? ""} ${e.involvedObject?.name ?? ""}`));
  })));
  return box;
}
