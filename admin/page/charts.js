// Charts of the last two minutes, by uPlot. Lines differ in their dashes as well as in their colours.

const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [14, 5], [4, 6], [1, 2], [6, 2, 1, 2]];
const most = dashes.length; // lines of one chart
const lowest = 150, highest = 420; // px of a plot

export class Chart {
  #plot = null;
  #names = "";

  /** lines(model) is [{name, value(point)}]; unit writes a value. */
  constructor(parent, lines, unit) {
    this.parent = parent;
    this.lines = lines;
    this.unit = unit;
    new ResizeObserver(() => requestAnimationFrame(() => this.#fit())).observe(parent);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#names = ""; // colours are those of the scheme
      if (this.model) this.show(this.model);
    });
  }

  show(model) {
    this.model = model;
    const lines = this.lines(model).slice(0, most), names = lines.map((l) => l.name).join("\n");
    const data = [model.series.map((p) => p.at), ...lines.map((l) => model.series.map((p) => l.value(p) ?? null))];
    if (this.#plot && names === this.#names) {
      this.#plot.setData(data, false);
      this.#plot.setScale("x", span(model));
      this.#newest();
      this.#fit();
      return;
    }
    this.#names = names;
    if (this.#plot) this.#plot.destroy();
    this.#plot = new uPlot(this.#options(lines, model), data, this.parent);
    this.#newest();
    this.#fit(); // the legend is known now
  }

  /** #newest has the legend say the newest values while nobody points at others. */
  #newest() {
    if (this.#plot.cursor.left < 0 || this.#plot.cursor.left === undefined) this.#plot.setLegend({ idx: this.#plot.data[0].length - 1 });
  }

  #options(lines, model) {
    const now = model.now;
    const css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(name).trim();
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const value = (u, v) => (v === null || v === undefined ? "–" : this.unit(v));
    return {
      ...this.#size(), cursor: { drag: { x: false, y: false } },
      scales: { x: { time: true, ...span(model) }, y: { range: (u, low, high) => [0, Math.max(high || 0, 1) * 1.1] } },
      axes: [{ ...axis, space: 60, size: 30, values: (u, list) => list.map((t) => (t > now + 600 ? "" : new Date(t * 1000).toTimeString().slice(0, 8))) },
        { ...axis, size: 58, values: (u, list) => list.map((v) => this.unit(v)) }],
      series: [{ value: (u, t) => (t ? new Date(t * 1000).toTimeString().slice(0, 8) : "–") }, ...lines.map((l, i) => ({
        label: l.name, stroke: colour(`--line-${i % 4}`), width: 2, dash: dashes[i], points: { show: false }, value,
      }))],
    };
  }

  /** #size is what the card has room for, without the legend below the plot. */
  #size() {
    const legend = this.parent.querySelector(".u-legend");
    const height = this.parent.clientHeight - (legend ? legend.offsetHeight : 25);
    return { width: Math.max(200, Math.floor(this.parent.clientWidth)), height: Math.max(lowest, Math.min(highest, Math.floor(height))) };
  }

  #fit() {
    const to = this.#size();
    if (this.#plot && (this.#plot.width !== to.width || this.#plot.height !== to.height)) this.#plot.setSize(to);
  }
}

/** span is the time that is shown: what there is, from 20 s to two minutes. */
const span = (model) => ({ min: Math.max(model.now - 120, Math.min(model.series[0].at, model.now - 20)), max: model.now });

/** rates is a line for each node that is asked. */
export const rates = (model) => model.sources.map((o) => ({
  name: o.name || model.name(o.self) || "this node", value: (p) => p.rates.get(o.key),
}));

/** times is the median and the 99th percentile of asks and of handlers. */
export const times = () => [
  { name: "ask p99", value: (p) => p.ask && p.ask[1] }, { name: "ask p50", value: (p) => p.ask && p.ask[0] },
  { name: "handler p99", value: (p) => p.handler && p.handler[1] }, { name: "handler p50", value: (p) => p.handler && p.handler[0] },
];
