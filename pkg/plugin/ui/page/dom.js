// The only place that makes elements. Text reaches the page as text nodes and attributes, never as markup; the server's policy
// (require-trusted-types-for) has the browser refuse everything else.

export const $ = (id) => document.getElementById(id);

// element makes an element. Attributes are named by the page, never by data; those that are undefined are left out.
export function element(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) e.setAttribute(key, value);
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

export function setAttribute(e, name, value) {
  if (value === null) e.removeAttribute(name);
  else if (e.getAttribute(name) !== value) e.setAttribute(name, value);
}

// frame returns a function that calls draw once for all its calls in a frame.
export function frame(draw) {
  let planned = false;
  return () => {
    if (planned) return;
    planned = true;
    requestAnimationFrame(() => { planned = false; draw(); });
  };
}

const two = (n) => String(n).padStart(2, "0");

// clock returns the time of day in the browser's time zone, with the date if it is not today.
export function clock(time, now = new Date()) {
  const t = new Date(time);
  if (Number.isNaN(t.getTime())) return "";
  const day = `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}`;
  const hour = `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
  return t.toDateString() === now.toDateString() ? hour : `${day} ${hour}`;
}

// duration returns a time in milliseconds as people say it: 4 s, 3 min 20 s, 5 h 2 min, 3 d 4 h.
export function duration(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}
