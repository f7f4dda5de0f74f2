// Matrices: what each node says of each other one. The troubled ones come first where not all fit.

import { ago, attr, h, keyed, set, short } from "./dom.js";

const most = 24; // rows and columns

export class Matrix {
  #table = h("table", { class: "matrix" });
  #head = h("tr", {}, h("td"));
  #body = h("tbody");
  #note = h("p", { class: "quiet" });

  /** cell(from, to, model) is {text, kind, title} of one cell. */
  constructor(parent, label, cell) {
    this.cell = cell;
    this.#table.append(h("caption", { class: "hidden" }, label), h("thead", {}, this.#head), this.#body);
    parent.append(h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, this.#table), this.#note);
  }

  show(model, chosen) {
    let list = model.nodes.filter((n) => n.state !== "gone" || (n.source && n.source.snap && n.source.error));
    const all = list.length;
    if (all > most) list = [...list].sort((x, y) => (y.state !== "up") - (x.state !== "up")).slice(0, most);
    set(this.#note, all > most ? `${most} of ${all} nodes, those in trouble first.` : all ? "" : "No members yet.");
    const columns = [null, ...list];
    keyed(this.#head, columns, (n) => (n ? n.id : "corner"), (n) => (n ? h("th", { scope: "col" }) : h("td")), (th, n) => {
      if (!n) return;
      set(th, n.label);
      attr(th, { class: mark(n, chosen), title: n.id });
    });
    keyed(this.#body, list, (n) => n.id, () => h("tr"), (tr, from) => {
      keyed(tr, columns, (n) => (n ? n.id : "name"), (n) => (n ? h("td") : h("th", { scope: "row" })), (td, to) => {
        if (!to) {
          set(td, from.label);
          attr(td, { class: mark(from, chosen), title: from.id });
          return;
        }
        const c = from === to ? { text: "", kind: "self", title: "" } : this.cell(from, to, model);
        set(td, c.text);
        attr(td, { class: c.kind, title: c.title ? `${from.label} → ${to.label}: ${c.title}` : null });
        td.style.setProperty("--heat", c.heat === undefined ? 0 : c.heat);
      });
    });
  }
}

const mark = (n, chosen) => `${n.state}${n.id === chosen ? " chosen" : ""}`;

const peerOf = (from, to) => {
  const snap = from.source && from.source.snap;
  return snap ? snap.peers.peers.find((p) => p.peer === to.id) : undefined;
};

const old = (from) => (from.source && !from.source.live ? " old" : "");

/** reach is whether a node hears another one. */
export function reach(from, to) {
  const p = peerOf(from, to);
  if (to.accused.has(from.id) && to.state !== "gone") return { text: "✕", kind: `bad${old(from)}`, title: "unreachable" };
  if (from.source && !from.source.live) return { text: "?", kind: "none old", title: "it does not answer" };
  if (to.state === "gone") return { text: "", kind: "none", title: "it is gone" };
  if (!p) return { text: from.source ? "·" : "", kind: "none", title: from.source ? "no connection" : "this node is not asked" };
  if (p.watched && !p.available) return { text: "✕", kind: "bad", title: `silent for ${ago(p.silence_s)}` };
  if (!p.control) return { text: "!", kind: "warn", title: "no control connection" };
  return { text: "✓", kind: "good", title: `round trip ${p.round_trip_ms.toFixed(1)} ms` };
}

/** phi is how a node judges another one's silence. The colour is how much of the patience with it is used up. */
export function phi(from, to) {
  const p = peerOf(from, to);
  if (!p || !p.watched) return { text: p ? "–" : "", kind: `none${old(from)}`, title: p ? "not watched by it" : "" };
  const heat = p.available ? p.silence_s / Math.max(p.silence_s + p.left_s, 0.001) : 1;
  const text = (p.available ? "" : "✕ ") + (p.phi >= 1000 ? "≥1k" : p.phi >= 10 ? short(p.phi) : p.phi.toFixed(1));
  return {
    text, heat: heat.toFixed(2), kind: `heat${heat > 0.5 ? " hot" : ""}${p.available ? "" : " bad"}${old(from)}`,
    title: `phi ${p.phi.toFixed(2)}, silent for ${p.silence_s.toFixed(1)} s` +
      (p.available ? `, unavailable in ${p.left_s.toFixed(1)} s` : ", unavailable"),
  };
}

/** links is what waits on the links from a node to another one. */
export function links(from, to) {
  const p = peerOf(from, to);
  if (!p) return { text: "", kind: "none", title: "" };
  if (to.state === "gone") return { text: p.queued + p.in_flight ? short(p.queued + p.in_flight) : "", kind: "none", title: "it is gone" };
  const held = p.queued + p.in_flight, heat = Math.min(1, Math.log10(1 + held) / 7.2); // 16 MiB is hot
  const sign = p.links_full ? "! " : p.links_stalled ? "‖ " : p.links_up < p.links ? "↯ " : "";
  return {
    text: sign + short(held), heat: heat.toFixed(2),
    kind: `heat${heat > 0.5 ? " hot" : ""}${p.links_full ? " bad" : sign ? " warn" : ""}${old(from)}`,
    title: `${p.queued} bytes queued, ${p.in_flight} in flight, ${p.links_up} of ${p.links} links up` +
      (p.links_full ? ", full" : "") + (p.links_stalled ? ", no credit" : "") + `, ${p.refused} sends refused so far`,
  };
}
