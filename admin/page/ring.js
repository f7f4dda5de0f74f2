// The ring of members: by mouse, by touch, and with the arrow keys.

import { attr, h, keyed, s, set } from "./dom.js";
import { signs } from "./model.js";

const mid = 160, radius = 112;

export class Ring {
  #svg = s("svg", { viewBox: "0 0 320 320", role: "group", "aria-label": "Ring of members; arrow keys go round" });
  #lines = s("g", { class: "accusations", "aria-hidden": "true" });
  #nodes = s("g");
  #count = s("text", { x: mid, y: mid - 2, class: "count" });
  #what = s("text", { x: mid, y: mid + 20, class: "what" });
  #at = ""; // the node that has the tab stop
  #model = null;

  /** picked is called with the id of a node that somebody chose. */
  constructor(parent, picked) {
    this.picked = picked;
    this.#svg.append(s("circle", { cx: mid, cy: mid, r: radius, class: "track" }), this.#lines, this.#count, this.#what, this.#nodes);
    parent.append(this.#svg);
    this.#svg.addEventListener("keydown", (e) => this.#key(e));
  }

  show(model, chosen) {
    this.#model = model;
    const list = model.nodes, up = list.filter((n) => n.state === "up").length;
    const here = list.filter((n) => n.state !== "gone").length;
    set(this.#count, list.length ? `${up}/${here}` : "–");
    set(this.#what, "up");
    if (!list.some((n) => n.id === this.#at)) this.#at = list.length ? list[0].id : "";
    const size = Math.max(4, Math.min(22, 300 / Math.max(list.length, 1)));
    const place = new Map(list.map((n, i) => {
      const turn = (i / list.length) * 2 * Math.PI - Math.PI / 2;
      return [n.id, [mid + radius * Math.cos(turn), mid + radius * Math.sin(turn)]];
    }));
    keyed(this.#nodes, list, (n) => n.id, (n) => this.#make(n), (g, n) => {
      const [x, y] = place.get(n.id), [sign, word] = signs[n.state];
      const leader = model.viewer && model.viewer.snap.members.leader === n.id;
      const text = `${n.label}: ${word}${leader ? ", leader" : ""}`;
      attr(g, {
        class: `node ${n.state}${n.id === chosen ? " chosen" : ""}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
        tabindex: n.id === this.#at ? 0 : -1, "aria-label": text, "aria-pressed": n.id === chosen,
      });
      const [disc, glyph, label, title] = g.children;
      attr(disc, { r: size });
      set(glyph, sign);
      attr(glyph, { "font-size": size });
      set(label, list.length > 24 ? "" : (leader ? "★ " : "") + clip(n.label));
      attr(label, { y: y > mid + 60 || y > mid - 20 ? size + 15 : -size - 6 });
      set(title, `${text}. A click shows more of it.`);
    });
    const accusations = [];
    for (const n of list) for (const by of n.accused.keys()) if (place.has(by) && n.state !== "gone") accusations.push([by, n.id]);
    keyed(this.#lines, accusations.slice(0, 200), (a) => a.join(" "), () => s("line"), (line, [from, to]) => {
      const [x1, y1] = place.get(from), [x2, y2] = place.get(to);
      attr(line, { x1, y1, x2, y2 });
    });
  }

  #make(n) {
    const g = s("g", { role: "button" }, s("circle"), s("text", { class: "glyph" }), s("text", { class: "label" }), s("title"));
    g.addEventListener("click", () => this.#go(n.id, true));
    return g;
  }

  #key(e) {
    const list = this.#model ? this.#model.nodes : [], i = list.findIndex((n) => n.id === this.#at);
    const to = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: list.length - 1 }[e.key];
    if (i < 0) return;
    if (e.key === "Enter" || e.key === " ") this.#go(this.#at, true);
    else if (to !== undefined) this.#go(list[(to + list.length) % list.length].id, false);
    else return;
    e.preventDefault();
  }

  #go(id, pick) {
    this.#at = id;
    for (const g of this.#nodes.children) {
      attr(g, { tabindex: g.dataset.key === id ? 0 : -1 });
      if (g.dataset.key === id) g.focus();
    }
    if (pick) this.picked(id);
  }
}

const clip = (text) => (text.length > 18 ? text.slice(0, 17) + "…" : text);

/** legend explains the signs that are on the page. */
export function legend(parent, model) {
  const there = Object.keys(signs).filter((state) => model.nodes.some((n) => n.state === state));
  keyed(parent, there, (state) => state, (state) => h("li", { class: state },
    h("span", { class: "sign", "aria-hidden": "true" }, signs[state][0]), signs[state][1]), () => {});
}
