// The table of objects and servers. Only the rows in sight are in the document, and they are changed in place: focus, clicks and
// screen readers keep their cell while its content changes.

import { element, frame, setAttribute, setText } from "./dom.js";
import { keyOf, label, lagText, serversOf, symbol } from "./model.js";

const maxChars = 30; // of a server's name in the head; the rest is in its title
const margin = 6; // rows above and below those in sight

export class Grid {
  // activate is called with an object and the key of a server, null for the object itself. title returns the texts of a row's head.
  constructor(box, { activate, title }) {
    Object.assign(this, { box, activate, title, items: [], tops: [0], drawn: new Map(), active: { key: null, column: 0 }, place: 0, zone: undefined, opened: null });
    this.head = box.querySelector(".head");
    this.body = box.querySelector(".body");
    this.headRow = new HeadRow();
    this.head.append(this.headRow.element);
    box.addEventListener("keydown", (e) => this.press(e));
    box.addEventListener("click", (e) => this.click(e));
    box.addEventListener("scroll", frame(() => this.draw()), { passive: true });
    box.addEventListener("focus", () => { if (!this.parking) this.moveTo(this.place, this.active.column); });
  }

  // mark marks the cell whose detail is open; null means none.
  mark(key, server) {
    this.opened = key ? { key, server } : null;
    this.draw();
  }

  // show takes groups with the rows to show of each.
  show(groups, zone) {
    const style = getComputedStyle(this.box);
    const rowHeight = parseFloat(style.getPropertyValue("--row")), headHeight = parseFloat(style.getPropertyValue("--head"));
    this.zone = zone;
    this.items = [];
    this.tops = [0];
    for (const group of groups) {
      if (!group.rows.length) continue;
      // The head of the table is that of the first group.
      if (this.items.length) this.add({ key: `head ${group.key}`, group }, headHeight);
      for (const o of group.rows) this.add({ key: keyOf(o), group, o }, rowHeight);
    }
    const columns = Math.max(0, ...groups.map((g) => g.servers.length));
    const longest = Math.max(0, ...groups.flatMap((g) => g.servers.map((s) => s.name.length)));
    this.box.style.setProperty("--columns", String(columns)); // a property: the policy forbids only style attributes
    this.box.style.setProperty("--chars", String(Math.min(longest, maxChars)));
    setAttribute(this.box, "aria-rowcount", String(this.items.length + 1));
    setAttribute(this.box, "aria-colcount", String(columns + 1));
    this.body.style.height = `${this.tops.at(-1)}px`;
    this.findActive();
    this.draw();
  }

  add(item, height) {
    this.items.push(item);
    this.tops.push(this.tops.at(-1) + height);
  }

  // findActive finds the row that was active, or takes the one in its place.
  findActive() {
    const found = this.items.findIndex((i) => i.key === this.active.key && i.o);
    if (found >= 0) this.place = found;
    else {
      this.place = Math.max(0, Math.min(this.place, this.items.length - 1));
      if (this.items[this.place] && !this.items[this.place].o) this.place++; // A head has a row after it.
      if (this.items[this.place]) this.active.key = this.items[this.place].key;
    }
    this.active.column = Math.min(this.active.column, this.items[this.place]?.group.servers.length ?? 0);
  }

  indexAt(y) {
    let low = 0, high = this.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  draw() {
    const { scrollTop, clientHeight } = this.box;
    const first = Math.max(0, this.indexAt(scrollTop) - margin);
    const last = Math.min(this.items.length, this.indexAt(scrollTop + clientHeight) + 1 + margin);
    const top = this.items[Math.min(this.indexAt(scrollTop), this.items.length - 1)];
    this.headRow.update(top?.group ?? { servers: [], namespaces: new Set() }, 1);
    const focused = this.body.contains(document.activeElement);
    const wanted = new Set(this.items.slice(first, last).map((i) => i.key));
    // A focus that scrolls out of sight waits at the table, and the keys go on.
    if (focused && !wanted.has(this.active.key)) this.park();
    for (const [key, row] of this.drawn) {
      if (wanted.has(key)) continue;
      row.element.remove();
      this.drawn.delete(key);
    }
    let previous = null;
    for (let i = first; i < last; i++) {
      const row = this.drawRow(i);
      if (!row.isConnected || row.previousElementSibling !== previous) {
        if (previous) previous.after(row);
        else this.body.prepend(row);
      }
      previous = row;
    }
    this.box.tabIndex = this.drawn.has(this.active.key) ? -1 : 0;
    if (focused && this.drawn.has(this.active.key) && !this.body.contains(document.activeElement)) this.focus();
  }

  drawRow(i) {
    const item = this.items[i];
    let row = this.drawn.get(item.key);
    if (!row) this.drawn.set(item.key, row = item.o ? new Row() : new HeadRow());
    row.element.style.top = `${this.tops[i]}px`;
    const active = item.key === this.active.key ? this.active.column : -1;
    row.update(item.group, i + 2, item.o, active, this);
    return row.element;
  }

  park() {
    this.parking = true;
    this.box.tabIndex = 0;
    this.box.focus({ preventScroll: true });
    this.parking = false;
  }

  focus() { this.drawn.get(this.active.key)?.cells[this.active.column]?.element.focus({ preventScroll: true }); }

  // moveTo makes a cell active, scrolls to it and gives it the focus. Heads of groups are stepped over.
  moveTo(place, column, focus = true) {
    const step = place < this.place ? -1 : 1;
    place = Math.max(0, Math.min(place, this.items.length - 1));
    if (this.items[place] && !this.items[place].o) place += step;
    const item = this.items[place];
    if (!item) return;
    this.place = place;
    this.active = { key: item.key, column: Math.max(0, Math.min(column, item.group.servers.length)) };
    const box = this.box, top = this.tops[place], bottom = this.tops[place + 1] + this.head.offsetHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
    this.draw();
    if (!focus) return;
    this.focus();
    this.scrollAcross();
  }

  // scrollAcross brings the active column into sight, beside the names that stay.
  scrollAcross() {
    const cells = this.drawn.get(this.active.key)?.cells, cell = cells?.[this.active.column]?.element;
    if (!cell || !this.active.column) return;
    const left = cell.offsetLeft - cells[0].element.offsetWidth, right = cell.offsetLeft + cell.offsetWidth;
    if (left < this.box.scrollLeft) this.box.scrollLeft = left;
    if (right > this.box.scrollLeft + this.box.clientWidth) this.box.scrollLeft = right - this.box.clientWidth;
  }

  press(e) {
    if (e.altKey || e.metaKey) return;
    const page = Math.max(1, Math.floor(this.box.clientHeight / (this.tops[1] - this.tops[0] || 1)) - 2);
    const end = this.items.length - 1, { place, active: { column } } = this;
    const move = {
      ArrowUp: [place - 1, column], ArrowDown: [place + 1, column], ArrowLeft: [place, column - 1], ArrowRight: [place, column + 1],
      PageUp: [place - page, column], PageDown: [place + page, column],
      Home: e.ctrlKey ? [0, 0] : [place, 0], End: e.ctrlKey ? [end, Infinity] : [place, Infinity],
    }[e.key];
    if (move) this.moveTo(...move);
    else if (e.key === "Enter" || e.key === " ") this.open();
    else return;
    e.preventDefault();
  }

  click(e) {
    for (const row of this.drawn.values()) {
      const column = row.cells?.findIndex((c) => c.element.contains(e.target)) ?? -1;
      if (!row.o || column < 0) continue;
      this.moveTo(this.items.findIndex((i) => i.key === keyOf(row.o)), column);
      this.open();
      return;
    }
  }

  open() {
    const item = this.items[this.place];
    if (item?.o) this.activate(item.o, item.group.servers[this.active.column - 1]?.key ?? null);
  }
}

// Cell is one cell: a symbol and a text.
class Cell {
  constructor(role, className) {
    this.symbol = element("span", { class: "symbol", "aria-hidden": "true" });
    this.text = element("span", { class: "word" });
    this.element = element("div", { role, class: className }, this.symbol, this.text);
  }

  update(state, sign, text, name) {
    setAttribute(this.element, "data-state", state);
    setText(this.symbol, sign);
    setText(this.text, text);
    setAttribute(this.element, "aria-label", name);
    setAttribute(this.element, "title", name);
  }
}

// resize makes a row have as many cells after its head as there are servers.
function resize(row, count, make) {
  while (row.cells.length - 1 > count) row.cells.pop().element.remove();
  while (row.cells.length - 1 < count) {
    const cell = make();
    setAttribute(cell.element, "aria-colindex", String(row.cells.length + 1));
    row.cells.push(cell);
    row.element.append(cell.element);
  }
}

class Row {
  constructor() {
    const head = new Cell("rowheader", "name");
    this.note = element("span", { class: "note" });
    this.count = element("span", { class: "count" });
    head.element.append(this.note, this.count);
    head.element.setAttribute("aria-colindex", "1");
    this.cells = [head];
    this.element = element("div", { role: "row", class: "row" }, head.element);
  }

  update(group, index, o, active, grid) {
    this.o = o;
    setAttribute(this.element, "aria-rowindex", String(index));
    const byKey = serversOf(o, grid.zone);
    const { title, note } = grid.title(o);
    const state = o.status.phase, all = byKey.size, good = [...byKey.values()].filter((s) => s.state === "InSync").length;
    const why = [o.status.failureReason, o.status.failureMessage].filter(Boolean).join(": ");
    this.cells[0].update(state, symbol(state), title, [title, note, state, why, `${good} of ${all} servers in sync`].filter(Boolean).join(", "));
    setText(this.note, o.status.failureReason ? `${o.status.failureReason} ${note}`.trim() : note);
    setText(this.count, all ? `${good}/${all}` : "–");
    setAttribute(this.count, "data-off", good < all ? "" : null);
    resize(this, group.servers.length, () => new Cell("gridcell", "cell"));
    group.servers.forEach((server, j) => {
      const s = byKey.get(server.key), cell = this.cells[j + 1];
      if (!s) return cell.update("none", "·", "", `${server.name}: not a server of ${title}`);
      const lag = s.serialLag ? `, ${lagText(s.serialLag)}` : "";
      return cell.update(s.state, symbol(s.state), label(s), `${server.name}: ${s.state}${lag}`);
    });
    const opened = grid.opened?.key === keyOf(o) ? group.servers.findIndex((s) => s.key === grid.opened.server) + 1 : -1;
    this.cells.forEach((c, j) => {
      c.element.tabIndex = j === active ? 0 : -1;
      setAttribute(c.element, "data-open", j === opened ? "" : null);
    });
  }
}

class HeadRow {
  constructor() {
    const first = { element: element("div", { role: "columnheader", class: "name", "aria-colindex": "1" }) };
    this.cells = [first];
    this.element = element("div", { role: "row", class: "row servers" }, first.element);
  }

  update(group, index) {
    setAttribute(this.element, "aria-rowindex", String(index));
    setText(this.cells[0].element, group.title ?? "");
    resize(this, group.servers.length, () => {
      const name = element("span", { class: "server" }), role = element("span", { class: "role" }), off = element("span", { class: "off" });
      return { name, role, off, element: element("div", { role: "columnheader", class: "cell" }, name, element("span", { class: "under" }, role, " ", off)) };
    });
    group.servers.forEach((s, j) => {
      const cell = this.cells[j + 1];
      setText(cell.name, s.name);
      setText(cell.role, s.role ?? "");
      setText(cell.off, s.off ? `${s.off} off` : "");
      setAttribute(cell.element, "title", `${s.key}, ${s.role}`);
      setAttribute(cell.element, "aria-label", `${s.name}, ${s.role}${s.off ? `, ${s.off} not in sync` : ""}`);
    });
  }
}
