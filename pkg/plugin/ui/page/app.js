// The page: which view is shown, what the user does, and what the watches report.

import { $, clock, element, frame, setAttribute, setText } from "./dom.js";
import { Detail } from "./detail.js";
import { Grid } from "./grid.js";
import { changesOf, groupsOf, keyOf, rowsOf, titleOf } from "./model.js";
import { Timeline } from "./timeline.js";
import { follow, read } from "./watch.js";

const api = "/apis/sync.bindy.firestoned.io/v1alpha1";

// View is a set of objects that is followed: all zones, or one zone with its records.
class View {
  constructor(path, query, zone) {
    Object.assign(this, { path, query, zone, objects: new Map(), loaded: false, error: null, at: null, seen: new Map(), search: "", only: false, active: null, scroll: 0 });
  }

  start() {
    this.abort = new AbortController();
    follow(this.path, this.query, this.abort.signal, {
      listed: (items) => {
        const now = new Map(items.map((o) => [keyOf(o), o]));
        if (this.loaded) {
          for (const [key, o] of now) this.report(this.objects.get(key), o);
          for (const [key, o] of this.objects) if (!now.has(key)) this.report(o, null);
        }
        this.objects = now;
        this.loaded = true;
        this.at = Date.now();
        if (this === zones) followAddress();
        update();
      },
      changed: (type, o) => {
        const gone = type === "DELETED", key = keyOf(o), before = this.objects.get(key);
        if (before || !gone) this.report(before, gone ? null : o);
        if (gone) this.objects.delete(key);
        else this.objects.set(key, o);
        update();
      },
      connected: (error) => {
        if (error && !this.error) this.at = Date.now();
        this.error = error;
        update();
      },
    });
  }

  // report notes when servers changed, and adds the changes to the timeline: those of a zone among its records once.
  report(before, after) {
    const o = after ?? before, changes = changesOf(before, after);
    if (!after) this.seen.delete(keyOf(o));
    for (const { subject, to } of changes) {
      if (!subject || !after) continue;
      if (!this.seen.has(keyOf(o))) this.seen.set(keyOf(o), new Map());
      this.seen.get(keyOf(o)).set(subject, to === null ? undefined : Date.now());
    }
    if (this !== zones && o.objectRef.kind === "DNSZone") return;
    for (const change of changes) timeline.add(o, change);
  }
}

let scope, zones, view, route = "";
const update = frame(draw);
const timeline = new Timeline($("timeline"), $("spoken"), openFromTimeline);
const seen = (key, server) => view.seen.get(key)?.get(server) ?? zones.seen.get(key)?.get(server);
const detail = new Detail(api, () => view.zone, seen);
const grid = new Grid($("viewport"), { activate, title });

// title returns the DNS name of an object, and what else tells it from others.
function title(o) {
  const { namespace } = o.metadata, { kind, name } = o.objectRef;
  if (kind === "DNSZone") return { title: titleOf(o), note: scope.namespace ? name : `${namespace}/${name}` };
  return { title: titleOf(o), note: `${kind} ${name}` };
}

const number = new Intl.NumberFormat("en");
const count = (n, one) => `${number.format(n)} ${one}${n === 1 ? "" : "s"}`;

function draw() {
  const objects = [...view.objects.values()];
  const groups = groupsOf(objects, view.zone);
  let shown = 0;
  for (const g of groups) {
    g.rows = rowsOf(g.objects, view.search, view.only);
    shown += g.rows.length;
    const zonesOnly = view === zones;
    g.title = `${count(g.rows.length, zonesOnly ? "zone" : "object")}${scope.namespace || view !== zones ? "" : `, ${[...g.namespaces].sort().slice(0, 3).join(", ")}`}`;
  }
  const off = objects.filter((o) => !o.status.inSync).length;
  setText($("count"), view.loaded ? `${count(objects.length, view === zones ? "zone" : "object")}, ${off ? `${number.format(off)} not in sync` : "all in sync"}` : "");
  setAttribute($("count"), "data-off", off ? "" : null);
  document.title = `${off ? `${off} not in sync` : view.zone ?? "Zones"} – Lockstep`;
  setText($("heading"), view.zone ?? "Zones");
  $("back").hidden = view === zones;
  drawConnection();
  drawEmpty(objects.length, shown);
  grid.show(groups, view.zone);
  takeFocus();
  timeline.draw();
  detail.changed(view.objects.get(detail.key()) ?? zones.objects.get(detail.key()));
}

// takeFocus gives the focus to the table of a view that was opened, as soon as it has a row.
function takeFocus() {
  if (!view.opened || $("viewport").hidden) return;
  view.opened = false;
  if (document.activeElement === document.body || document.activeElement === $("heading")) grid.moveTo(grid.place, grid.active.column);
}

function drawEmpty(all, shown) {
  if (!shown && $("viewport").contains(document.activeElement)) $("heading").focus(); // or the focus would be lost
  $("empty").hidden = !view.loaded || shown > 0;
  $("viewport").hidden = !shown;
  setText($("empty"), all ? (view.only && !view.search ? "Everything is in sync." : "Nothing matches the filter.") : emptyText());
}

function emptyText() {
  if (view !== zones) return "There is nothing in this zone.";
  const where = scope.namespace ? `in namespace ${scope.namespace}. Run kubectl lockstep ui -n for another one, or -A for all.` : "in any namespace.";
  return `There is no DNSZone${scope.selector ? ` with labels ${scope.selector}` : ""} ${where}`;
}

const words = { lost: "Disconnected", refused: "Refused", live: "Live", connecting: "Connecting" };

function drawConnection() {
  const { error } = view;
  const state = !error ? (view.loaded ? "live" : "connecting") : error.code === 401 || error.code === 403 ? "refused" : "lost";
  setAttribute($("connection"), "data-state", state);
  setText($("connection-word"), words[state]);
  setAttribute($("overview"), "data-old", error ? "" : null);
  $("problem").hidden = !error;
  if (!error) return;
  const old = view.loaded ? ` What is shown is of ${clock(view.at)}.` : "";
  setText($("problem-title"), state === "refused" ? `The cluster refuses to show this.${old}` : `The connection was lost: reconnecting.${old}`);
  setText($("problem-text"), error.code ? `${error.code}: ${error.message}` : error.message);
  setText($("problem-hint"), hint(error));
}

// hint returns what to do about a refusal.
function hint(error) {
  if (error.code === 401) return "The session or the credentials of the kubeconfig have ended. Run kubectl lockstep ui again.";
  if (error.code !== 403) return "";
  const all = view === zones && !scope.namespace ? " If you may read one namespace only, run kubectl lockstep ui -n with its name." : "";
  return `The ClusterRole view would do, bound in the namespace. The page asks again by itself.${all}`;
}

// A zone's address is in the fragment, so that the browser's Back works and a reload stays.
function followAddress() {
  const wanted = location.hash.slice(1);
  if (wanted === route || !zones.loaded) return;
  const zone = [...zones.objects.values()].find((o) => fragmentOf(o) === wanted);
  if (wanted && !zone) history.replaceState(null, "", location.pathname); // It has gone.
  if (!zone && !route) return;
  route = zone ? wanted : "";
  show(zone ? zoneView(zone) : zones);
}

const fragmentOf = (zone) => `${zone.metadata.namespace}/${zone.objectRef.name}`; // Names in Kubernetes have nothing to escape.

function zoneView(zone) {
  return new View(`${api}/namespaces/${zone.metadata.namespace}/syncstatuses`, { fieldSelector: `zone=${zone.zone}` }, zone.zone);
}

function activate(o, server) {
  if (server === null && view === zones && o.zone) location.hash = fragmentOf(o);
  else openDetail(o, server);
}

function openDetail(o, server) {
  grid.mark(keyOf(o), server);
  detail.open(o, server);
}

// openFromTimeline opens an object, or its zone if it is not in the view.
function openFromTimeline(object, server) {
  const o = view.objects.get(keyOf(object)) ?? zones.objects.get(keyOf(object));
  if (o) return openDetail(o, server);
  const zone = [...zones.objects.values()].find((z) => z.zone === object.zone && z.metadata.namespace === object.metadata.namespace);
  if (zone) location.hash = fragmentOf(zone);
}

function show(next) {
  Object.assign(view, { active: grid.active, scroll: $("viewport").scrollTop });
  if (view !== zones) view.abort.abort();
  detail.close();
  grid.opened = null;
  view = next;
  $("search").value = view.search;
  $("only").checked = view.only;
  grid.active = view.active ?? { key: null, column: 0 };
  grid.place = 0;
  if (view !== zones) view.start();
  $("heading").focus();
  view.opened = true;
  draw();
  $("viewport").scrollTop = view.scroll;
}

function closeDetail() {
  detail.close();
  grid.mark(null);
  if ($("viewport").hidden) $("heading").focus();
  else grid.moveTo(grid.place, grid.active.column);
}

function escape(e) {
  if (e.key !== "Escape" || e.target === $("search") && $("search").value) return;
  if (detail.of) closeDetail();
  else if (view !== zones) location.hash = "";
}

function listen() {
  document.addEventListener("keydown", escape);
  window.addEventListener("resize", update);
  window.addEventListener("hashchange", followAddress);
  $("search").addEventListener("input", () => { view.search = $("search").value; update(); });
  $("only").addEventListener("change", () => { view.only = $("only").checked; update(); });
  $("back").addEventListener("click", () => { location.hash = ""; });
  $("close").addEventListener("click", closeDetail);
}

async function begin() {
  try {
    scope = await read("/scope", {});
  } catch (error) {
    $("problem").hidden = false;
    setText($("problem-title"), "The page cannot start.");
    setText($("problem-text"), error.message);
    return;
  }
  $("scope").replaceChildren(scope.namespace ? "Namespace " : "All namespaces", element("b", {}, scope.namespace), scope.selector ? `, ${scope.selector}` : "");
  zones = view = new View(scope.namespace ? `${api}/namespaces/${scope.namespace}/syncstatuses` : `${api}/syncstatuses`,
    { fieldSelector: "kind=DNSZone", ...(scope.selector && { labelSelector: scope.selector }) });
  listen();
  zones.start();
  draw();
}

begin();
