// Where an entity lives: a form that asks the node of this page, only when somebody wants to know.

import { ago, byId, h, keyed, many, set } from "./dom.js";

/** words says in lines what a node answered about an entity. */
export function words(a, model, now) {
  const lines = [a.node ? `lives at ${model.name(a.node)}, in shard ${a.shard}` : `shard ${a.shard} lives nowhere, or its owner has not answered`];
  if (a.since) lines.push(`known for ${ago(Math.max(0, (now - Date.parse(a.since)) / 1000))}, fence ${a.fence}`);
  if (a.stopping) lines.push("its owner is giving the shard away");
  else if (a.node && !a.answered) lines.push("its owner has not answered");
  if (a.answered) lines.push(`${a.entities} entities live in this shard`);
  if (a.waiting) lines.push(`${many(a.waiting, "message")} of this node wait for a home`);
  const m = a.mailbox;
  if (m) lines.push(!m.lives ? "the entity has no instance" : m.busy ? `the entity is busy, ${many(m.waiting, "message")} wait` : `the entity is idle for ${ago(m.idle_s)}`);
  return lines;
}

/** Where is the form below the shards. */
export class Where {
  #model;
  #turn = 0; // of the question asked last: an earlier answer is not shown

  constructor(model) {
    this.#model = model;
    byId("where").addEventListener("submit", (e) => {
      e.preventDefault();
      this.#ask(byId("where-type").value, byId("where-id").value);
    });
  }

  /** show lists the types; of several nodes this server is none, and nothing can be asked. */
  show() {
    byId("where").hidden = !this.#model.types.length || this.#model.sources.some((o) => o.name);
    keyed(byId("where-type"), this.#model.types, (t) => t.name, (t) => h("option", { value: t.name }), (e, t) => set(e, t.name));
  }

  async #ask(type, id) {
    const turn = ++this.#turn;
    this.#say([id ? "asking" : "Type an id."]);
    if (!id) return;
    let lines;
    try {
      const r = await fetch(`v1/types/${encodeURIComponent(type)}/home?id=${encodeURIComponent(id)}`, { cache: "no-store" });
      const a = await r.json();
      lines = r.ok ? [`${id}:`, ...words(a, this.#model, Date.now())] : [a.error];
    } catch {
      lines = ["No answer: ask again."];
    }
    if (turn === this.#turn) this.#say(lines);
  }

  #say(lines) {
    keyed(byId("where-home"), lines.map((text, n) => ({ n, text })), (l) => l.n, () => h("p"), (e, l) => set(e, l.text));
  }
}
