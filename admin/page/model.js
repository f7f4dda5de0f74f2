// The model: what all nodes say, joined into one picture of the cluster, and what is wrong with it.

import { clock, many, short } from "./dom.js";

/** What a node's state looks like. Each has a sign of its own, beside its colour. */
export const signs = {
  up: ["●", "up"],
  joining: ["+", "joining"],
  leaving: ["–", "leaving"],
  suspended: ["‖", "suspended"],
  silent: ["?", "no answer"],
  unreachable: ["!", "unreachable"],
  down: ["✕", "down"],
  gone: ["○", "gone"],
};

/** docs is a page of the documentation: what to do next. The page works without it. */
const docs = (page) => `https://github.com/kith-io/kith/blob/main/docs/${page}`;

const outage = { say: "What happens meanwhile", page: docs("failover.md#while-it-lasts") };
const twin = { say: "Which of the two to end", page: docs("troubleshooting.md#two-clusters-where-there-should-be-one") };
const sidesEnd = { say: "Which side goes on", page: docs("split-brain.md#explained") };
const quiet = { say: "What a node that handles nothing waits for", page: docs("troubleshooting.md#nothing-is-handled-on-one-node") };
const unhandled = { say: "Why messages are not handled", page: docs("troubleshooting.md#messages-are-not-handled") };
const lossy = { say: "Which counter has them, and why", page: docs("account.md#lost-and-not-reported") };
const homeless = { say: "Why shards have no home", page: docs("troubleshooting.md#shards-are-not-where-they-should-be") };
const notUp = { say: "Why a node does not come up", page: docs("troubleshooting.md#a-node-does-not-start-or-does-not-come-up") };
const comeAndGo = { say: "Members that come and go", page: docs("troubleshooting.md#members-come-and-go") };

const staleAfter = 3; // s: an older answer of a node is no news
const staleRefused = 1; // s: the same of a node that has refused a newer one
const keepGone = 15 * 60; // s that a node which is no member any more stays on the page
const history = 120; // s of the charts
const patience = 2; // s that something may be amiss before it is said to be: moves are quick

export class Model {
  nodes = []; // of the ring, sorted by address
  sources = []; // the nodes that are asked, in their order
  types = [];
  partitions = [];
  waits = []; // a line for each lost member: when what lived there is served again
  problems = []; // {bad: bool, text, next: {say, page, command}}, the worst first
  apart = false; // there has been no convergence for longer than a moment
  events = []; // newest first
  decisions = [];
  series = []; // {at, rates: Map(source key -> messages/s), ask: [p50, p99], handler: [p50, p99]}
  #seen = new Map(); // id -> node, also of those that are gone
  #most = new Map(); // type -> most shards that had a home
  #amiss = new Map(); // what is amiss -> since when

  /** take makes the picture of a board event. */
  take(board) {
    const now = Date.parse(board.at) / 1000;
    this.now = now;
    this.sources = board.nodes.map((n, i) => ({
      key: n.name || `#${i}`, name: n.name || "", age: n.age_s, error: n.error || "", snap: n.snapshot || null,
      fresh: !!n.snapshot && n.age_s < (n.error ? staleRefused : staleAfter),
    }));
    for (const o of this.sources) {
      o.self = o.snap ? o.snap.members.self : "";
      o.state = o.snap ? o.snap.health.state : "";
      o.live = o.fresh && o.state !== "ended";
      o.joined = o.live && o.state !== "starting";
    }
    this.#members(now);
    this.#names();
    this.#shards(board.types, now);
    const told = this.sources.find((o) => o.live && o.snap.partitions && o.snap.partitions.list); // of one table
    this.partitions = told ? told.snap.partitions.list : [];
    this.#told();
    this.#measure(now);
    this.#judge(now);
  }

  node(id) {
    return this.#seen.get(id);
  }

  name(id) {
    const n = this.#seen.get(id);
    return n ? n.label : String(id).replace(/#[0-9a-f]+$/, "");
  }

  /** #members joins the views of all nodes. */
  #members(now) {
    const views = this.sources.filter((o) => o.joined);
    const viewer = views.find((o) => o.state === "ready") || views[0] || this.sources.find((o) => o.snap);
    this.viewer = viewer || null;
    const found = new Map();
    for (const o of views.length ? views : viewer ? [viewer] : []) {
      for (const m of o.snap.members.members) {
        const n = found.get(m.id) || { id: m.id, addr: m.addr, member: m, accused: new Map(), views: 0 };
        if (o === viewer || o.self === m.id) n.member = m;
        n.views++;
        for (const by of m.accused_by || []) n.accused.set(by, true);
        found.set(m.id, n);
      }
    }
    for (const o of this.sources) {
      if (o.self && !found.has(o.self) && o.snap && !/#0$/.test(o.self)) {
        found.set(o.self, { id: o.self, addr: o.self.replace(/#[0-9a-f]+$/, ""), member: null, accused: new Map(), views: 0 });
      }
    }
    for (const [id, n] of found) {
      n.source = this.sources.find((o) => o.self === id) || null;
      const old = this.#seen.get(id);
      n.state = this.#state(n);
      n.since = old && old.state === n.state ? old.since : now;
      if (old) [n.given, n.rank] = [old.given, old.rank];
      n.seen = now;
      this.#seen.set(id, n);
    }
    for (const [id, n] of this.#seen) {
      if (found.has(id)) continue;
      if (n.state !== "gone") Object.assign(n, { state: "gone", since: now });
      if (now - n.since > keepGone) this.#seen.delete(id);
    }
    for (const n of this.#seen.values()) n.rank = n.source && n.source.name ? this.sources.indexOf(n.source) : n.rank ?? Infinity;
    const text = (x, y) => x.addr.localeCompare(y.addr, "en", { numeric: true }) || x.id.localeCompare(y.id);
    this.nodes = [...this.#seen.values()].sort((x, y) => (x.rank === y.rank ? 0 : x.rank - y.rank) || text(x, y));
  }

  #state(n) {
    const o = n.source, m = n.member;
    if (!m || m.status === "removed") return o && o.live && o.state !== "leaving" ? "joining" : "gone";
    if (m.status === "down") return "down";
    if (n.accused.size > 0 || !m.reachable) return "unreachable";
    if (o && o.fresh && o.state === "ended") return "gone";
    if (o && !o.fresh) return "silent";
    if (o && o.state === "suspended") return "suspended";
    if (m.status === "leaving" || m.status === "exiting") return "leaving";
    if (m.status === "joining" || m.status === "weakly-up") return "joining";
    return "up";
  }

  /** #names gives each node a short name that no other one has. */
  #names() {
    const hosts = new Set(this.nodes.map((n) => n.addr.replace(/:\d+$/, "")));
    const used = new Map();
    for (const n of this.nodes) {
      const own = (n.source && n.source.name) || n.given;
      n.given = own;
      n.label = own || (hosts.size === 1 && this.nodes.length > 1 ? n.addr.replace(/^.*:/, ":") : n.addr);
      used.set(n.label, (used.get(n.label) || 0) + 1);
    }
    for (const n of this.nodes) {
      if (used.get(n.label) > 1 && n.state === "gone") n.label += ` (${n.id.replace(/^.*#/, "").slice(0, 4)})`;
    }
  }

  /** said is a text of a node in which others are called by the names that they have on this page. */
  said(text) {
    for (const n of this.nodes) {
      text = text.split(n.id).join(n.label);
      if (!n.given) continue;
      if (!this.nodes.some((o) => o !== n && o.addr.startsWith(n.addr))) text = text.split(n.addr).join(n.label);
    }
    return text;
  }

  #shards(types, now) {
    this.types = types.map((t) => {
      const rows = new Map();
      for (const n of t.report.nodes) {
        if (n.registered) rows.set(n.node, { id: n.node, hosted: n.shards, entities: n.entities, stopping: 0, sure: true });
      }
      for (const o of this.sources) { // what a node says of itself is newer
        const own = o.snap && o.snap.types.find((x) => x.name === t.report.name);
        const n = o.self && this.#seen.get(o.self);
        if (!own || !n) continue;
        if (!o.live && n.state === "gone") { // its shards are others' now
          rows.delete(o.self);
          continue;
        }
        if (o.live || !rows.has(o.self)) {
          rows.set(o.self, { id: o.self, hosted: own.hosted, entities: own.entities, stopping: own.stopping, sure: o.live });
        }
      }
      const into = new Map();
      for (const m of t.report.moves) into.set(m.to, (into.get(m.to) || 0) + 1);
      const list = [...rows.values()].map((r) => ({ ...r, coming: into.get(r.id) || 0 }));
      list.sort((x, y) => this.nodes.indexOf(this.node(x.id)) - this.nodes.indexOf(this.node(y.id)));
      const homed = Math.min(t.report.shards, list.reduce((sum, r) => sum + (r.sure ? r.hosted : 0), 0));
      const most = Math.max(homed, this.#most.get(t.report.name) || 0);
      this.#most.set(t.report.name, most);
      const entities = list.reduce((sum, r) => sum + (r.sure ? r.entities : 0), 0);
      const own = this.sources.flatMap((o) => (o.snap ? o.snap.types : [])).find((x) => x.name === t.report.name);
      return {
        kind: (own && own.kind) || "entities",
        name: t.report.name, shards: t.report.shards, homed, most, entities, rows: list, moving: t.moving,
        moves: t.report.moves, coordinator: t.report.coordinator || "", missing: t.report.missing, age: t.age_s,
      };
    });
  }

  /** shardsAt is how many shards of all types live at a node, and whether that is of now. */
  shardsAt(id) {
    const rows = this.types.flatMap((t) => t.rows.filter((r) => r.id === id));
    return { count: rows.reduce((sum, r) => sum + r.hosted, 0), sure: rows.every((r) => r.sure) };
  }

  /** #told joins events and decisions of all nodes: what several of them say at the same time is one line. */
  #told() {
    const join = (list, of) => {
      const all = [];
      for (const o of this.sources) {
        for (const e of (o.snap && of(o.snap)) || []) all.push({ ...e, ms: Date.parse(e.at), by: [o] });
      }
      all.sort((x, y) => y.ms - x.ms);
      const out = [];
      for (const e of all) {
        const same = out.find((x) => (x.words || x.text) === (e.words || e.text) && Math.abs(x.ms - e.ms) < 2000 && !x.by.includes(e.by[0]));
        if (same) same.by.push(e.by[0]);
        else out.push(e);
        if (out.length >= 100) break;
      }
      return out;
    };
    this.events = join(this.sources, (s) => s.events);
    this.decisions = join(this.sources, (s) => s.decisions);
  }

  #measure(now) {
    const point = { at: now, rates: new Map(), ask: null, handler: null };
    const sum = { handled: 0, refused: 0, failed: 0, lost: 0, bytes: 0, asks: 0, parked: 0, known: false,
      all: { refused: 0, failed: 0, lost: 0 } };
    for (const o of this.sources) {
      const r = o.live && o.snap.rates;
      if (!r) continue;
      sum.known = true;
      for (const k of ["handled", "refused", "failed", "lost", "asks"]) sum[k] += r[k];
      sum.bytes += r.data_out;
      for (const k of Object.keys(sum.all)) sum.all[k] += (r.sums && r.sums[k]) || 0;
      for (const t of o.snap.types) sum.parked += t.parked || 0;
      point.rates.set(o.key, r.handled);
      for (const t of r.times) {
        const worst = point[t.measure] || [0, 0];
        if (t.measure in point) point[t.measure] = [Math.max(worst[0], t.p50_us), Math.max(worst[1], t.p99_us)];
      }
    }
    this.sum = sum;
    this.last = point;
    this.series.push(point);
    while (this.series[0].at < now - history || this.series[0].at > now) this.series.shift();
  }

  /** #judge says what is wrong, the worst first. */
  #judge(now) {
    const out = [], amiss = new Map();
    const bad = (text, next) => out.push({ bad: true, text, next });
    const warn = (text, next) => out.push({ bad: false, text, next });
    const lasting = (what) => { // reports whether that has gone on for longer than a moment
      amiss.set(what, this.#amiss.get(what) ?? now);
      return now - amiss.get(what) >= patience;
    };
    const names = (ids) => ids.map((id) => this.name(id)).join(", ");
    const joined = this.sources.filter((o) => o.joined);
    if (new Set(joined.map((o) => o.snap.members.cluster).filter((c) => !/^0+$/.test(c))).size > 1) {
      bad("These nodes are in different clusters.", twin);
    }
    const sides = this.#sides(joined);
    if (sides.length > 1) bad(`The cluster is split: ${sides.map((s) => names(s.map((o) => o.self))).join(" | ")}.`, sidesEnd);
    const again = this.#outages(joined);
    const waits = this.#outages(joined);
    this.waits = waits.rest().map((id) => `${this.name(id)}:${waits(id)}`);
    for (const n of this.nodes) {
      const o = n.source;
      if (n.state === "unreachable") {
        const command = `kith down ${n.addr} --dry-run`; // --dry-run changes nothing
        bad(`${n.label} is unreachable${n.accused.size ? `, say ${names([...n.accused.keys()])}` : ""}.${again(n.id)}`, { ...outage, command });
      } else if (n.state === "down") {
        bad(`${n.label} is down${n.member.cause ? ` (${n.member.cause})` : ""}.${again(n.id)}`, outage);
      } else if (n.state === "suspended") {
        bad(`${n.label} handles no messages: ${o.snap.health.reason || "it is suspended"}.`, quiet);
      } else if (n.state === "silent" && lasting(`silent ${n.id}`)) {
        bad(`${n.label} has not answered since ${clock(1000 * (now - o.age))}, and is a member.`, comeAndGo);
      } else if (n.state === "gone" && o && o.error && now - n.since < 60) {
        warn(`${n.label} is gone since ${clock(1000 * n.since)}.`);
      }
    }
    const apart = []; // who sees no convergence
    for (const id of again.rest()) bad(`${this.name(id)} is lost.${again(id)}`, outage);
    for (const o of this.sources) {
      if (!o.snap && o.age > staleAfter) warn(`${o.name || "The node"} has not answered: ${o.error || "no answer yet"}.`);
      const h = o.live && o.snap.health, waits = h && ["starting", "waiting", "ready"].includes(h.state) && h.reason;
      if (waits && lasting(`waits ${o.key}`)) warn(`${o.name || this.name(o.self)} is not ready: ${this.said(h.reason)}.`, notUp);
      if (!o.joined) continue;
      for (const t of o.snap.health.twins || []) {
        bad(t.cluster === o.snap.members.cluster
          ? `Another side of this cluster lives at ${t.via} and has removed this one: end one of the two.`
          : `Another cluster of this name (${t.cluster}) lives at ${t.via}: end one of the two.`, twin);
      }
      const c = o.snap.convergence;
      if (!c.converged && c.for_s && lasting(`convergence ${o.key}`)) apart.push(o);
      if (o.snap.health.draining) warn(`${this.name(o.self)} drains: everything moves away from it, and it stays a member.`, {
        say: "It ends with", command: "kith drain --undo" });
      for (const p of o.snap.peers.peers) {
        const link = `${this.name(o.self)} to ${this.name(p.peer)}`;
        if (p.links_full) bad(`The link from ${link} is full: sends are refused.`, unhandled);
        else if (p.links_stalled && lasting(`stalled ${link}`)) warn(`The link from ${link} stands still: no credit comes.`, unhandled);
      }
      const r = o.snap.rates;
      if (r && r.lost > 0) bad(`${this.name(o.self)} loses ${short(r.lost)} messages a second.`, lossy);
    }
    this.#apart(apart, warn);
    for (const t of this.types) {
      if (t.homed < t.most && lasting(`homes ${t.name}`)) {
        bad(`${many(t.most - t.homed, "shard")} of ${t.name} ${t.most - t.homed === 1 ? "has" : "have"} no home.`, homeless);
      }
      const silent = t.missing.filter((id) => !this.node(id) || !["gone", "unreachable", "down"].includes(this.node(id).state));
      if (silent.length && lasting(`missing ${t.name}`)) {
        warn(`${names(silent)} did not say what shards of ${t.name} live there.`, comeAndGo);
      }
    }
    this.#amiss = amiss;
    const said = new Set();
    this.problems = out.filter((p) => !said.has(p.text) && said.add(p.text)).sort((x, y) => y.bad - x.bad);
  }

  /** #sides groups nodes that answer: those of one side hear each other, directly or over others. */
  #sides(joined) {
    const accuses = (x, y) => this.node(y.self) && this.node(y.self).accused.has(x.self);
    const sides = [];
    for (const o of joined) {
      const near = sides.filter((s) => s.some((x) => !accuses(x, o) && !accuses(o, x)));
      const rest = sides.filter((s) => !near.includes(s));
      sides.splice(0, sides.length, ...rest, [...near.flat(), o]);
    }
    return sides;
  }

  /**
   * #outages returns a function that says of a member when what lived there is served again; nothing of one that has no
   * outage. Its rest are the members that it has not been asked for and that have one.
   */
  #outages(joined) {
    const all = new Map();
    for (const o of joined) {
      for (const x of o.snap.members.outages || []) {
        if (x.shards && x.shards > (all.get(x.member)?.shards || 0)) all.set(x.member, x);
      }
    }
    const rest = new Set(all.keys());
    const again = (id) => {
      const x = all.get(id);
      rest.delete(id);
      if (!x) return "";
      const by = x.served_by && clock(Date.parse(x.served_by));
      let from = by ? `are served again from ${by} on` : x.no_quorum ? "wait for a quorum of the seats, or an operator" : "wait for an operator";
      if (x.late) from = `were to be served again from ${by} on, and wait`;
      return ` ${many(x.shards, "shard")} ${x.decided ? "that lived there" : "there"} ${from}.`;
    };
    again.rest = () => [...rest];
    return again;
  }

  /** #apart says in one line who sees no convergence, and for whom it waits. */
  #apart(list, warn) {
    this.apart = list.length > 0;
    if (!this.apart) return;
    const at = list.map((o) => this.name(o.self)), who = new Set(list.flatMap((o) => o.snap.convergence.blockers.map((b) => this.name(b.member))));
    const waits = who.size ? `: ${at.length > 1 ? "they wait" : "it waits"} for ${[...who].slice(0, 3).join(", ")}` : "";
    warn(`No convergence at ${at.slice(0, 8).join(", ")}${waits}.`, { say: "Who holds it up, and why", command: "kith explain" });
  }
}
