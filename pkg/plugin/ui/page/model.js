// What is shown, without the browser: groups, rows and changes of SyncStatus objects.

const symbols = new Map(Object.entries({
  InSync: "✓", Stale: "◔", Propagating: "◔", Held: "‖", Missing: "−", Divergent: "≠", OutOfSync: "≠", Shadowed: "◑", Bogus: "‼",
  NotLoaded: "○", Lame: "!", Refused: "⊘", Unreachable: "✕", Failed: "✕", Unknown: "?",
}));

export const symbol = (state) => symbols.get(state) ?? "?";

export const keyOf = (o) => `${o.metadata.namespace}/${o.metadata.name}`;

// serverName returns the name of a server for people, as the plugin prints it.
export function serverName(s) {
  if (!s.provider) return s.pod || s.instance;
  return s.address ? `${s.provider}/${s.address}` : s.provider;
}

export const serverKey = (o, s) => `${s.namespace || o.metadata.namespace}/${serverName(s)}`;

// serversOf returns the servers of an object by key. A DNSEndpoint has a row for each of its zones: zone selects.
export function serversOf(o, zone) {
  return new Map((o.servers ?? []).filter((s) => !zone || !s.zone || s.zone === zone).map((s) => [serverKey(o, s), s]));
}

const natural = new Intl.Collator("en", { numeric: true });

// groupsOf divides objects by the servers that they are on, because zones of different fleets have no server in common. An object
// is in the group with the most servers that has all of its own.
export function groupsOf(objects, zone) {
  const sets = new Map();
  const keys = new Map(objects.map((o) => {
    const servers = serversOf(o, zone);
    for (const [key, s] of servers) {
      if (!sets.has(key)) sets.set(key, { key, name: serverName(s), role: s.role, namespace: key.split("/")[0], off: 0 });
    }
    return [o, [...servers.keys()]];
  }));
  const groups = [];
  for (const o of [...objects].sort((a, b) => keys.get(b).length - keys.get(a).length)) {
    const own = keys.get(o);
    let group = groups.find((g) => own.length ? own.every((k) => g.has.has(k)) : g.namespaces.has(o.metadata.namespace));
    if (!group) groups.push(group = { has: new Set(own), namespaces: new Set(), objects: [] });
    group.namespaces.add(o.metadata.namespace);
    group.objects.push(o);
  }
  for (const g of groups) {
    g.servers = [...g.has].map((key) => ({ ...sets.get(key) }))
      .sort((a, b) => (a.role > b.role) - (a.role < b.role) || natural.compare(a.key, b.key));
    g.key = g.servers.map((s) => s.key).join();
    const byKey = new Map(g.servers.map((s) => [s.key, s]));
    for (const o of g.objects) for (const [key, s] of serversOf(o, zone)) if (s.state !== "InSync") byKey.get(key).off++;
  }
  return groups.sort((a, b) => natural.compare(a.key, b.key));
}

// rowsOf returns the objects of a group to show, zones first.
export function rowsOf(objects, search, onlyNotInSync) {
  const wanted = search.trim().toLowerCase();
  const shown = (o) => (!onlyNotInSync || !o.status.inSync) &&
    (!wanted || `${titleOf(o)} ${o.zone ?? ""} ${o.objectRef.kind} ${keyOf(o)}`.toLowerCase().includes(wanted));
  return objects.filter(shown).map((o) => [orderOf(o), o]).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, o]) => o);
}

const orderOf = (o) => (o.objectRef.kind === "DNSZone" ? `0 ${o.zone} ${keyOf(o)}` : `1 ${titleOf(o)} ${keyOf(o)}`);

// titleOf returns the DNS name of an object: that of a zone, and names relative to the zone with the type otherwise.
export function titleOf(o) {
  if (o.objectRef.kind === "DNSZone") return o.zone || o.objectRef.name;
  const [first, ...others] = o.rrsets ?? [];
  if (!first) return o.objectRef.name;
  const name = first.name === `${o.zone}.` ? "@" : o.zone && first.name.endsWith(`.${o.zone}.`) ? first.name.slice(0, -o.zone.length - 2) : first.name;
  return `${name} ${first.type}${others.length ? ` +${others.length}` : ""}`;
}

// changesOf returns the changes of servers and of the phase between two versions of an object; before is missing for a new one, after
// for a deleted one. A phase that follows from the servers is not a change of its own.
export function changesOf(before, after) {
  if (!before) return [{ subject: null, from: null, to: after.status.phase }];
  if (!after) return [{ subject: null, from: before.status.phase, to: null }];
  const old = serversOf(before), now = serversOf(after);
  const changes = [];
  for (const [key, s] of now) {
    const was = old.get(key)?.state ?? null;
    if (was !== s.state) changes.push({ subject: key, name: serverName(s), from: was, to: s.state });
  }
  for (const [key, s] of old) if (!now.has(key)) changes.push({ subject: key, name: serverName(s), from: s.state, to: null });
  const phase = before.status.phase !== after.status.phase || before.status.failureReason !== after.status.failureReason;
  if (phase && (!changes.length || [before, after].some((o) => o.status.phase === "Failed"))) {
    const word = (o) => (o.status.failureReason ? `${o.status.phase} (${o.status.failureReason})` : o.status.phase);
    changes.push({ subject: null, from: word(before), to: word(after), state: after.status.phase });
  }
  return changes;
}

// describe returns the change of a server or an object in words.
export function describe({ from, to }) {
  if (to === null) return from === null ? "deleted" : "gone";
  return from === null ? `new, ${to}` : `${from} → ${to}`;
}

const lags = (s) => (s.serialLag > 0 ? ` −${s.serialLag}` : s.serialLag < 0 ? ` +${-s.serialLag}` : "");

// label returns the text of a cell: the state, and how many serials the server is behind (−) or ahead (+).
export const label = (s) => (s.state === "InSync" ? "InSync" : s.state + lags(s));

// lagText returns the lag in words.
export function lagText(lag) {
  if (lag === undefined) return undefined;
  const n = Math.abs(lag);
  return lag === 0 ? "0" : `${n} ${n === 1 ? "serial" : "serials"} ${lag > 0 ? "behind" : "ahead"}`;
}

const silent = new Set(["Unreachable", "NotLoaded", "Lame", "Refused"]);

// isSilent reports whether a server shows no data of the zone.
export const isSilent = (s) => silent.has(s.state);

const maxObserved = 20; // as in the API

// comparisonOf returns what is declared and what a server serves. A server's row has only what differs, and the first twenty of it.
export function comparisonOf(o, s) {
  const id = (r) => `${r.name} ${r.type}`;
  const observed = new Map((s?.observed ?? []).map((r) => [id(r), r]));
  const declared = new Map((o.rrsets ?? []).map((r) => [id(r), r]));
  const isZone = o.objectRef.kind === "DNSZone"; // It has what differs on any server.
  return [...new Set([...declared.keys(), ...observed.keys()])].map((key) => {
    const row = { key, declared: data(declared.get(key)), served: "", differs: false };
    if (!s) return row;
    if (observed.has(key)) Object.assign(row, { served: data(observed.get(key)), differs: true });
    else if (isSilent(s)) row.served = "unknown";
    else if (s.state === "InSync" || observed.size < maxObserved && (!isZone || observed.size)) row.served = row.declared;
    else row.served = "not compared";
    return row;
  });
}

function data(r) {
  if (!r?.rdata?.length && !r?.omitted) return "nothing";
  const lines = (r.rdata ?? []).map((text) => `${r.ttl ?? ""} ${text}`.trim());
  if (r.omitted) lines.push(`and ${r.omitted} more`);
  return lines.join("\n");
}
