// The panels beside the ring: what is wrong, figures, one node, shards, events, decisions.

import { ago, attr, byId, clock, h, keyed, many, micros, number, set, short } from "./dom.js";
import { signs } from "./model.js";

const shown = 6; // problems

/** banner says in one line whether all is well, and else what is wrong. */
export function banner(model) {
  const list = model.problems.slice(0, shown), more = model.problems.length - list.length;
  const bad = model.problems.some((p) => p.bad);
  const up = model.nodes.filter((n) => n.state === "up").length, here = model.nodes.filter((n) => n.state !== "gone").length;
  let items = list.map((p) => ({ ...p, sign: p.bad ? "✕" : "!" }));
  if (more > 0) items.push({ text: `And ${more} more.`, sign: "…" });
  if (!items.length) {
    const forming = model.nodes.some((n) => n.state === "joining" || n.state === "leaving");
    const moving = model.types.reduce((n, t) => n + t.moving, 0);
    let text = `All is well: ${up === 1 ? "1 node is" : `${up} nodes are`} up`;
    if (here === 0) text = "No members yet.";
    else if (forming) text = `${up} of ${here} nodes are up, others come or go`;
    if (here > 0) text += moving ? `, ${many(moving, "shard")} on the way.` : ".";
    items = [{ text, sign: up === 0 ? "…" : "✓" }];
  }
  say(items, bad ? "bad" : model.problems.length ? "warn" : up ? "good" : "");
  document.title = (bad ? "✕ " : model.problems.length ? "! " : "") + "kith";
}

function say(items, grade) {
  attr(byId("banner"), { class: `banner ${grade}` });
  const make = () => h("div", {}, h("span", { class: "sign", "aria-hidden": "true" }), h("p"), h("p", { class: "next" }));
  keyed(byId("banner"), items, (i) => i.text, make, (e, item) => {
    set(e.children[0], item.sign);
    set(e.children[1], item.text);
    attr(e, { class: item.bad === undefined ? "" : item.bad ? "bad" : "warn" });
    next(e.children[2], item.next);
  });
}

/** next is what to do about a problem: a page to read, a command that says more. */
function next(p, { say: text, page, command } = {}) {
  const key = `${text} ${page} ${command}`;
  if (p.dataset.key === key) return;
  p.dataset.key = key;
  p.replaceChildren(); // a page opens beside this one, which goes on to watch
  if (page) p.append(h("a", { href: page, target: "_blank", rel: "noopener noreferrer" }, text));
  else if (text) p.append(text);
  if (command) p.append(page ? ", or " : ": ", h("code", {}, command));
}

/** troubled are the states that want somebody to look: who comes or goes as it should is in none of them. */
const troubled = ["suspended", "silent", "unreachable", "down"];

/** tiles are the figures that say most. */
export function tiles(model) {
  const here = model.nodes.filter((n) => n.state !== "gone"), up = here.filter((n) => n.state === "up").length;
  const sum = (of) => model.types.reduce((n, t) => n + of(t), 0);
  const homed = sum((t) => t.homed), most = sum((t) => t.most), ask = model.last.ask, s = model.sum;
  const joined = model.sources.filter((o) => o.joined);
  const converged = joined.length > 0 && joined.every((o) => o.snap.members.converged);
  const list = [
    { name: "Nodes up", value: `${up} / ${here.length}`, grade: here.some((n) => troubled.includes(n.state)) ? "warn" : "" },
    { name: "Shards at home", value: number(homed), note: `of ${number(most)}`, grade: homed < most ? "bad" : "" },
    { name: "Moving", value: number(sum((t) => t.moving)), note: "shards", grade: "" },
    { name: "Converged", value: joined.length ? (converged ? "yes" : "no") : "–", grade: model.apart ? "warn" : "" },
    { name: "Messages", value: s.known ? short(s.handled) : "–", note: "/s", grade: "" },
    { name: "Ask p99", value: ask ? micros(ask[1]) : "–", grade: "" },
    { name: "Between nodes", value: s.known ? short(s.bytes) + "B" : "–", note: "/s", grade: "" },
    { name: "Refused", value: s.known ? short(s.refused) : "–", note: "/s", grade: s.refused > 0 ? "warn" : "" },
    { name: "Lost", value: s.known ? short(s.all.lost) : "–", note: s.lost > 0 ? `+${short(s.lost)}/s` : "in all", grade: s.lost > 0 ? "bad" : "" },
  ];
  const make = (t) => h("div", {}, h("dt", {}, t.name), h("dd", {}, h("span"), h("small")));
  keyed(byId("tiles"), list, (t) => t.name, make, (e, t) => {
    set(e.children[1].children[0], (t.grade ? (t.grade === "bad" ? "✕ " : "! ") : "") + t.value);
    set(e.children[1].children[1], t.note ? ` ${t.note}` : "");
    attr(e, { class: `tile ${t.grade}` });
  });
}

/** bytes is a size for people. */
const bytes = (n) => (n ? `${short(n)}B` : "0");

/** trouble is what waits, and what came to nothing: now, and since the nodes were started. */
export function trouble(model) {
  const s = model.sum, rate = (n) => (n > 0 ? `${short(n)} /s` : "0");
  const list = s.known ? [
    { what: "Asks that wait for their answers", now: number(s.asks), all: "", grade: "" },
    { what: "Messages that wait for the home of a shard", now: bytes(s.parked), all: "", grade: s.parked ? "warn" : "" },
    { what: "Refused", now: rate(s.refused), all: number(s.all.refused), grade: s.refused > 0 ? "warn" : "" },
    { what: "Failed in a handler", now: rate(s.failed), all: number(s.all.failed), grade: s.failed > 0 ? "warn" : "" },
    { what: "Lost", now: rate(s.lost), all: number(s.all.lost), grade: s.lost > 0 ? "bad" : "" },
  ] : [{ what: "Nothing has been measured yet.", now: "", all: "", grade: "" }];
  const make = () => h("tr", {}, h("th", { scope: "row" }), h("td"), h("td"));
  keyed(byId("trouble"), list, (r) => r.what, make, (tr, r) => {
    [r.what, r.now, r.all].forEach((text, i) => set(tr.children[i], text));
    attr(tr, { class: r.grade });
  });
}

/** nodes is the list below the ring: who is there, and what lives where. pick is called with the node that is chosen. */
export function nodes(model, chosen, pick) {
  const make = (n) => {
    const b = h("button", { type: "button" }, h("span", { class: "sign", "aria-hidden": "true" }), h("span", { class: "name" }),
      h("span", { class: "value" }), h("span", { class: "more", "aria-hidden": "true" }));
    b.addEventListener("click", () => pick(n.id));
    return h("li", {}, b);
  };
  keyed(byId("nodes"), model.nodes, (n) => n.id, make, (li, n) => {
    const b = li.firstElementChild, [sign, word] = signs[n.state], at = model.shardsAt(n.id);
    const leads = model.viewer && model.viewer.snap.members.leader === n.id;
    const says = n.state === "up" ? [] : [`${word} for ${ago(model.now - n.since)}`];
    if (n.state !== "gone") says.push((at.sure ? "" : "had ") + many(at.count, "shard"));
    set(b.children[0], sign);
    set(b.children[1], (leads ? "★ " : "") + n.label);
    set(b.children[2], says.join(" · "));
    set(b.children[3], n.id === chosen ? "⌄" : "›");
    attr(b.children[0], { class: `sign ${n.state}` });
    attr(b, { "aria-pressed": n.id === chosen, "aria-label": `${n.label}, ${word}${leads ? ", leader" : ""}: show more`, title: "Show more of this node" });
    attr(li, { class: n.state === "gone" ? "gone" : "" });
  });
}

/** detail is what is known of one node. */
export function detail(model, id) {
  const n = model.node(id), rows = [];
  if (n) {
    const m = n.member, o = n.source, snap = o && o.snap;
    rows.push(["Node", n.label === n.id ? n.id : `${n.label}, ${n.id}`], ["State", `${signs[n.state][0]} ${signs[n.state][1]} for ${ago(model.now - n.since)}`]);
    if (m) {
      rows.push(["Status", m.status + (m.cause ? `: ${m.cause}` : "") + (m.by ? `, says ${model.name(m.by)}` : "")]);
      if (m.roles.length) rows.push(["Roles", m.roles.join(", ")]);
      if (m.app_version) rows.push(["Version", m.app_version]);
      if (m.up_number) rows.push(["Up number", String(m.up_number)]);
    }
    if (n.accused.size) rows.push(["Unreachable for", [...n.accused.keys()].map((i) => model.name(i)).join(", ")]);
    if (snap) {
      rows.push(["Health", snap.health.state + (snap.health.reason ? `: ${snap.health.reason}` : "")]);
      rows.push(["Runs for", ago(snap.uptime_s)]);
    }
    if (o) rows.push(["Last heard", o.fresh ? "now" : `${ago(o.age)} ago`]);
    if (o && o.error) rows.push(["No answer", o.error]);
    for (const t of model.types) {
      const r = t.rows.find((x) => x.id === id);
      if (r) rows.push([t.name, `${many(r.hosted, "shard")}, ${r.entities === 1 ? "1 entity" : `${number(r.entities)} entities`}`]);
    }
  }
  const box = byId("detail");
  if (!rows.length) {
    set(box, "Choose a node: what is known of it is shown here.");
    return;
  }
  let dl = box.querySelector("dl");
  if (!dl) box.replaceChildren((dl = h("dl")));
  keyed(dl, rows, (r) => r[0], () => h("div", {}, h("dt"), h("dd")), (e, [k, v]) => {
    set(e.children[0], k);
    set(e.children[1], v);
  });
}

/** kinds are what a type can be beside entities: its word, what one of them is called, and what one does. */
const kinds = { singleton: ["singleton", "singleton", "lives"], daemons: ["daemons", "daemon", "runs"], pool: ["pool", "node", "works"] };

/** noteOf says in a line what there is of a type. Shards that nobody has needed yet have no home, and want none. */
function noteOf(model, t) {
  const parts = [], away = t.most - t.homed;
  const here = t.rows.filter((r) => r.sure && r.hosted).map((r) => model.name(r.id));
  if (t.kind === "singleton") parts.push(here.length ? `lives at ${here.join(", ")}` : "lives nowhere now");
  else if (t.kind === "daemons") parts.push(`${number(t.homed)} of ${many(t.shards, "daemon")} ${t.homed === 1 ? "runs" : "run"}`);
  else if (t.kind === "pool") parts.push(`workers on ${many(here.length, "node")}`);
  else {
    parts.push(away ? `${number(t.homed)} of ${many(t.most, "shard")} at home` : `${t.most && t.most === t.shards ? "all " : ""}${many(t.homed, "shard")} at home`);
    if (t.most < t.shards) parts.push(`${number(t.shards - t.most)} not needed yet`);
    parts.push(t.entities === 1 ? "1 entity" : `${number(t.entities)} entities`);
  }
  if (t.moving) parts.push(`${number(t.moving)} moving`);
  if (t.coordinator) parts.push(`coordinator ${model.name(t.coordinator)}`);
  return parts.join(" · ");
}

/** shards is where those of each type live. */
export function shards(model, chosen) {
  const box = byId("shards");
  if (!model.types.length) {
    if (!box.querySelector(".quiet")) box.replaceChildren(h("p", { class: "quiet", "data-key": "-" }, "No types yet."));
    return;
  }
  const make = () => h("div", {}, h("h3", {}, h("span"), h("span", { class: "kind" })), h("p", { class: "quiet" }), h("div", { class: "bars" }), h("ul", { class: "moves" }));
  keyed(box, model.types, (t) => t.name, make, (e, t) => {
    const [head, note, bars, moves] = e.children;
    set(head.children[0], t.name);
    set(head.children[1], kinds[t.kind] ? kinds[t.kind][0] : "");
    attr(e, { class: `type${t.kind === "singleton" ? " one" : ""}` });
    set(note, noteOf(model, t));
    const top = Math.max(1, ...t.rows.map((r) => r.hosted + r.coming));
    let rows = t.rows.map((r) => ({ ...r, node: model.node(r.id) }));
    if (t.kind === "singleton") rows = []; // the line above says all
    const away = t.most - t.homed;
    if (away > 0) rows.push({ id: "no home", hosted: away, coming: 0, stopping: 0, sure: false, node: null });
    const bar = () => h("div", {}, h("span", { class: "name" }), h("span", { class: "bar" }, h("i"), h("i", { class: "coming" })), h("span", { class: "value" }));
    keyed(bars, rows, (r) => r.id, bar, (b, r) => {
      const state = r.node ? r.node.state : "none";
      const lost = !r.sure && r.node;
      set(b.children[0], r.node ? `${signs[state][0]} ${r.node.label}` : r.id);
      b.children[1].children[0].style.width = `${(100 * r.hosted) / top}%`;
      b.children[1].children[1].style.width = `${(100 * r.coming) / top}%`;
      set(b.children[2], (lost ? "had " : "") + number(r.hosted) + (r.coming ? ` +${r.coming}` : "") + (r.stopping ? ` (${r.stopping} stopping)` : ""));
      attr(b, { class: `row ${state}${r.sure ? "" : " unsure"}${r.id === chosen ? " chosen" : ""}` });
    });
    const text = (m) => `${m.shard}: ${model.name(m.from)} → ${model.name(m.to)}, ${m.phase} for ${m.age_s.toFixed(1)} s`;
    keyed(moves, t.moves.slice(0, 5), (m) => m.shard, () => h("li"), (li, m) => set(li, text(m)));
  });
}

/** partitions is where the instances of each are, below the shards; nothing where there is none. */
export function partitions(model) {
  const list = model.partitions.map((p) => {
    const at = (p.instances || []).map((id, slot) => (id ? `${slot} ${model.name(id)}` : "")).filter((x) => x);
    const coming = (p.changes || []).map((c) => (c.to ? `${c.slot} to ${model.name(c.to)}` : `${c.slot} ends`));
    const note = [`${p.has} of ${many(p.wanted, "instance")}`, p.handoff, at.join(", ")];
    if (coming.length) note.push(`handing over: ${coming.join(", ")}`);
    return [p.path, note.filter((x) => x).join(" · ")];
  });
  keyed(byId("partitions"), list, (p) => p[0], () => h("div", { class: "type" }, h("h3"), h("p", { class: "quiet" })), (e, [path, note]) => {
    set(e.children[0], path);
    set(e.children[1], note);
  });
}

/**
 * tenures says which seats vouch for each node that answers, and for how long; how near its renewals came to the end of
 * its tenure; when what lived at lost members is served again. Without tenures there is no such card.
 */
export function tenures(model) {
  const list = model.sources.filter((o) => o.joined && o.snap.members.tenure).map((o) => ({ id: o.self, name: o.name || model.name(o.self), ...o.snap.members.tenure }));
  byId("tenures").hidden = list.length === 0;
  const seats = list.reduce((most, t) => (t.seats.length > most.length ? t.seats : most), []);
  const sec = (s) => (s > 0 ? `${s.toFixed(1)} s` : "–");
  const head = ["Node", "Held for", "At least", ...seats.map((s, i) => `${i + 1}: ${s.holder ? model.name(s.holder) : "empty"}`)];
  keyed(byId("seats"), head.map((text, i) => [i, text]), (c) => c[0], () => h("th", { scope: "col" }), (th, [, text]) => set(th, text));
  keyed(byId("vouched"), list, (t) => t.id, () => h("tr", {}, h("th", { scope: "row" })), (tr, t) => {
    const cells = [t.name, t.held ? sec(t.left_s) : "no tenure", t.held ? sec(t.least_s) : "–", ...seats.map((s, i) => sec(t.seats[i] ? t.seats[i].left_s : 0))];
    while (tr.children.length < cells.length) tr.append(h("td"));
    while (tr.children.length > cells.length) tr.lastElementChild.remove();
    cells.forEach((text, i) => set(tr.children[i], text));
    const away = t.seats.some((s) => s.holder && !(s.left_s > 0));
    attr(tr, { class: t.held ? (away ? "warn" : "") : "bad", title: model.said(t.text) });
  });
  keyed(byId("waits"), model.waits, (w) => w, () => h("li"), (li, w) => set(li, w));
}

const signOf = { bad: "✕", good: "✓", news: "·" };

/** events is what has happened, newest first. */
export function events(model) {
  log(byId("events"), model.events.slice(0, 80), "Nothing has happened yet.", (e) =>
    [e.grade, signOf[e.grade] || "·", model.said(e.words || e.text), model.said(e.reason || ""), who(model, e)]);
}

/** decisions is what the resolver decided, newest first. */
export function decisions(model) {
  log(byId("decisions"), model.decisions.slice(0, 40), "It had nothing to decide.", (d) =>
    [d.lives ? "news" : "bad", d.lives ? "✓" : "✕", `${model.said(d.text)}${d.lives ? "" : " This node does not live."}`, "", who(model, d)]);
}

const who = (model, e) => (model.sources.length > 1 ? `seen by ${e.by.map((o) => o.name || model.name(o.self)).join(", ")}` : "");

function log(list, items, none, of) {
  const make = () => h("li", {}, h("time"), h("span", { class: "sign", "aria-hidden": "true" }), h("span", { class: "text" }),
    h("span", { class: "why" }), h("span", { class: "who" }));
  if (!items.length) items = [null];
  keyed(list, items, (e) => (e ? `${e.ms} ${e.text}` : "-"), make, (li, e) => {
    const [grade, sign, text, why, by] = e ? of(e) : ["quiet", "", none, "", ""];
    set(li.children[0], e ? clock(e.ms) : "");
    attr(li.children[0], { datetime: e ? new Date(e.ms).toISOString() : null });
    set(li.children[1], sign);
    set(li.children[2], text);
    set(li.children[3], why);
    set(li.children[4], by);
    attr(li, { class: grade in signOf || grade === "quiet" ? grade : "news", title: e ? `${new Date(e.ms).toISOString()} ${e.text}` : null });
  });
}

/**
 * live says whether what is shown is of now; heard is how many seconds ago the stream last said something, null if it
 * never did. The seconds stand beside the text that is read out, which stays as it is.
 */
export function live(state, why, heard) {
  const e = byId("stream"), is = state === "live";
  attr(e, { class: `stream ${is ? "good" : "bad"}` });
  set(e.children[0], is ? "●" : "✕");
  set(e.children[1], is ? "live" : "not live");
  set(e.children[2], is ? "" : `${heard === null ? "nothing heard yet" : `last heard ${ago(heard)} ago`}${why ? ` (${why})` : ""}, trying again`);
  document.body.classList.toggle("stale", !is);
  if (is) return;
  const text = heard === null ? "Nothing has been heard from the cluster yet." : "Not live: below is what was last heard, not what is.";
  say([{ text, sign: "✕", bad: true }], "bad");
  document.title = "✕ not live · kith";
}
