// What builds the document: everything that comes from nodes goes through textContent and setAttribute, never as markup.

const svgNS = "http://www.w3.org/2000/svg";

/** set puts text into an element, if it is not there already: what is selected or focused stays so. */
export function set(e, text) {
  if (e.textContent !== String(text)) e.textContent = text;
}

/** attr sets attributes that differ; null and false take one away. */
export function attr(e, all) {
  for (const [k, v] of Object.entries(all)) {
    if (v === null || v === false || v === undefined) e.removeAttribute(k);
    else if (e.getAttribute(k) !== String(v)) e.setAttribute(k, v);
  }
  return e;
}

function build(e, attributes, children) {
  attr(e, attributes);
  for (const c of children) e.append(c); // a string becomes text
  return e;
}

/** h makes an element of HTML with attributes and children, which are elements or text. */
export const h = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);

/** s makes an element of SVG. */
export const s = (tag, attributes = {}, ...children) => build(document.createElementNS(svgNS, tag), attributes, children);

/** byId finds an element. */
export const byId = (id) => document.getElementById(id);

/** keyed has a parent hold one child for each item, in order, made once for each key and then only updated. */
export function keyed(parent, items, key, make, update) {
  const old = new Map();
  for (const c of [...parent.children]) old.set(c.dataset.key, c);
  let at = parent.firstElementChild;
  for (const item of items) {
    const k = String(key(item));
    let c = old.get(k);
    if (c) old.delete(k);
    else {
      c = make(item);
      c.dataset.key = k;
    }
    if (c === at) at = at.nextElementSibling;
    else parent.insertBefore(c, at);
    update(c, item);
  }
  for (const c of old.values()) c.remove();
}

/** clock is a time of day. */
export const clock = (ms) => new Date(ms).toTimeString().slice(0, 8);

/** short is a number of few characters: 950, 12.3k, 4.5M. */
export function short(n) {
  if (n < 9.95) return n === Math.round(n) ? String(n) : n.toFixed(1);
  if (n < 999.5) return String(Math.round(n));
  for (const unit of ["k", "M", "G", "T"]) {
    n /= 1000;
    if (n < 99.95) return n.toFixed(1).replace(/\.0$/, "") + unit;
    if (n < 999.5) return Math.round(n) + unit;
  }
  return n.toExponential(1);
}

/** micros is a duration given in microseconds. */
export function micros(us) {
  if (us < 1000) return `${short(us)} µs`;
  if (us < 1e6) return `${short(us / 1000)} ms`;
  return `${short(us / 1e6)} s`;
}

/** ago is a duration given in seconds, for people. */
export function ago(sec) {
  if (sec < 100) return `${Math.floor(sec)} s`;
  if (sec < 6000) return `${Math.floor(sec / 60)} min`;
  if (sec < 172800) return `${Math.floor(sec / 3600)} h`;
  return `${Math.floor(sec / 86400)} d`;
}

/** number writes thousands apart. */
export const number = (n) => n.toLocaleString("en");

/** many is "1 shard", "2 shards". */
export const many = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;
