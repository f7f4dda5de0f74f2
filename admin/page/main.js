// The page: a stream of what the board shows goes into the model, and the model into the document.

import { byId, micros, set, short } from "./dom.js";
import { Model } from "./model.js";
import { legend, Ring } from "./ring.js";
import { links, Matrix, phi, reach } from "./matrix.js";
import { banner, decisions, detail, events, live as tellLive, nodes, partitions, shards, tenures, tiles, trouble } from "./panels.js";
import { Chart, rates, times } from "./charts.js";
import { Where } from "./where.js";
import { follow } from "./stream.js";

const model = new Model();
let chosen = "", heard = null, state = "lost", why = "";

const pick = (id) => {
  chosen = id === chosen ? "" : id;
  show();
};
const ring = new Ring(byId("ring"), pick);
const matrices = [
  new Matrix(byId("reach"), "Which node hears which", reach),
  new Matrix(byId("phi"), "How each node judges the silence of each other one", phi),
  new Matrix(byId("links"), "What waits on the links between nodes", links),
];
const where = new Where(model);
const charts = [new Chart(byId("rates"), rates, short), new Chart(byId("times"), times, micros)];

function show() {
  if (heard === null) return;
  const live = state === "live"; // else the banner says that it is not
  byId("api").hidden = model.sources.some((o) => o.name); // several nodes are shown: this server is none of them
  set(byId("cluster"), model.viewer ? `cluster ${model.viewer.snap.members.cluster}` : "no cluster yet");
  if (live) banner(model);
  tiles(model);
  trouble(model);
  ring.show(model, chosen);
  legend(byId("legend"), model);
  nodes(model, chosen, pick);
  detail(model, chosen);
  shards(model, chosen);
  partitions(model);
  tenures(model);
  where.show();
  events(model);
  decisions(model);
  for (const m of matrices) m.show(model, chosen);
  if (!document.hidden) for (const c of charts) c.show(model);
}

const tell = () => tellLive(state, why, heard === null ? null : (performance.now() - heard) / 1000);

follow("v1/watch", (board) => {
  heard = performance.now();
  model.take(board);
  show();
}, (s, w) => {
  const changed = state !== s;
  [state, why] = [s, w];
  tell();
  if (changed) show();
});
setInterval(tell, 500);
detail(model, "");
