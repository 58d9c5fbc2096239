// What has changed since the page was opened, newest first. Changes of many objects at once, as when a server stops, are one entry.

import { clock, element, setText } from "./dom.js";
import { describe, symbol, titleOf } from "./model.js";

const maxEntries = 200;
const maxNames = 3;
const together = 5000; // milliseconds
const speakEvery = 3000;
const maxSpoken = 5; // at once

export class Timeline {
  // open is called with an object and the key of a server, null for the object itself.
  constructor(list, live, open) {
    Object.assign(this, { list, live, open, entries: [], unsaid: [], spoken: 0 });
  }

  add(object, change) {
    const now = Date.now();
    const name = `${change.subject} ${change.from} ${change.to} ${object.metadata.namespace}`;
    let entry = this.entries.find((e) => e.titles && now - e.time < together && e.name === name);
    if (!entry) {
      entry = { name, time: now, change, object, zonesOnly: true, titles: new Set(), count: 0, first: [], element: null };
      this.entries.unshift(entry);
      for (const old of this.entries.splice(maxEntries)) old.element?.remove();
      for (const old of this.entries) if (now - old.time >= together) old.titles = null; // complete: the names are not needed any more
    }
    entry.titles.add(titleOf(object));
    entry.count = entry.titles.size;
    if (entry.first.length < maxNames) entry.first = [...entry.titles];
    entry.zonesOnly &&= object.objectRef.kind === "DNSZone";
    entry.changed = true;
    if (!this.unsaid.includes(entry)) this.unsaid.push(entry);
    this.unsaid.splice(0, this.unsaid.length - maxSpoken);
  }

  draw() {
    for (let i = this.entries.length - 1; i >= 0; i--) {
      const e = this.entries[i];
      if (!e.changed) continue;
      e.changed = false;
      if (!e.element) this.list.prepend(e.element = this.make(e));
      setText(e.element.querySelector(".what"), sentence(e));
      setText(e.element.querySelector(".who"), who(e));
    }
    this.speak();
  }

  make(e) {
    const button = element("button", { type: "button", "data-state": e.change.state ?? e.change.to ?? "Unknown" },
      element("time", { datetime: new Date(e.time).toISOString() }, clock(e.time)),
      element("span", { class: "symbol", "aria-hidden": "true" }, symbol(e.change.state ?? e.change.to)),
      element("span", { class: "text" }, element("span", { class: "what" }), " ", element("span", { class: "who" })));
    button.addEventListener("click", () => this.open(e.object, e.change.subject));
    return element("li", {}, button);
  }

  // speak has screen readers say the newest changes, not more often than they can be heard.
  speak() {
    const wait = this.spoken + speakEvery - Date.now();
    if (!this.unsaid.length || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.spoken = Date.now();
      setText(this.live, this.unsaid.map((e) => `${sentence(e)}: ${who(e)}.`).join(" "));
      this.unsaid = [];
    }, Math.max(wait, 300));
  }
}

const sentence = ({ change }) => (change.subject ? `${change.name} ${describe(change)}` : describe({ ...change, from: change.to === null ? null : change.from }));

function who({ count, first, zonesOnly }) {
  if (count > maxNames) return `${count} ${zonesOnly ? "zones" : "objects"}: ${first.join(", ")}, …`;
  return first.join(", ");
}
