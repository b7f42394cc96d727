// Risk, gap and residual by round: uPlot, redrawn at most five times a second.

const HEIGHT = 230;
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function axes(unit, isLog) {
  const both = { stroke: () => ink("--soft"), grid: { stroke: () => ink("--rule"), width: 1 },
    ticks: { stroke: () => ink("--rule"), width: 1 }, font: "12px system-ui, sans-serif" };
  const words = (_, values) => values.map((v) => (v === null ? "" : isLog ? v.toExponential(0).replace("+", "") : `${v}${unit}`));
  const upright = { ...both, size: 56, values: words };
  if (isLog) {
    upright.filter = (_, values) => values.map((v) => (v && Number.isInteger(Math.log10(v)) ? v : null));
    upright.grid = { ...both.grid, filter: upright.filter };
    upright.ticks = { ...both.ticks, filter: upright.filter };
  }
  return [{ ...both, size: 34 }, upright];
}

// A line where something happened, with its name beside it.
function markEvents(chart, events) {
  const { ctx, bbox } = chart, ratio = devicePixelRatio || 1;
  const shown = events.filter((event) => event.round > 0);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle = ink("--soft");
  ctx.lineWidth = ratio;
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.setLineDash([2 * ratio, 3 * ratio]);
  let free = -Infinity;
  for (const event of shown) {
    const x = Math.round(chart.valToPos(event.round, "x", true));
    if (x < bbox.left - 200) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (x > free) {
      ctx.fillText(event.kind, x + 3 * ratio, bbox.top + 11 * ratio);
      free = x + ctx.measureText(event.kind).width + 6 * ratio;
    }
  }
  ctx.restore();
}

// Every line's name at its right end; names that would cover each other move apart.
function nameLines(chart, series) {
  const { ctx, bbox } = chart, ratio = devicePixelRatio || 1, space = 14 * ratio;
  const names = [];
  series.forEach((one, i) => {
    const last = chart.data[i + 1].findLast((value) => value !== null);
    if (!one.isDashed && last !== undefined) names.push([chart.valToPos(last, "y", true), one]);
  });
  names.sort(([a], [b]) => a - b);
  let free = bbox.top + 4 * ratio;
  ctx.save();
  ctx.font = `600 ${12 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  for (const [y, one] of names) {
    const at = Math.max(y, free);
    free = at + space;
    ctx.fillStyle = ink(one.colour);
    ctx.fillText(one.label, bbox.left + bbox.width + 6 * ratio, at);
  }
  ctx.restore();
}

export class Chart {
  // series: {label, column, colour (a CSS variable), isDashed}; scale turns a value into what is drawn.
  constructor(parent, series, { unit = "", isLog = false, scale = 1 } = {}) {
    Object.assign(this, { parent, series, unit, isLog, scale, events: [] });
    this.make();
    new ResizeObserver(() => this.resize()).observe(parent);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.plot.redraw());
  }

  make() {
    this.plot = new uPlot({
      width: Math.max(this.parent.clientWidth, 200), height: HEIGHT,
      scales: { x: { time: false },
        y: this.isLog ? { distr: 3 } : { range: (_, low, high) => [0, Math.max(high * 1.15, 1)] } },
      axes: axes(this.unit, this.isLog),
      cursor: { points: { size: 6 }, drag: { x: true, y: false } },
      series: [{ label: "round" }, ...this.series.map((one) => ({
        label: one.label, stroke: () => ink(one.colour), width: one.isDashed ? 1.2 : 2,
        dash: one.isDashed ? [6, 5] : undefined, points: { show: false }, spanGaps: false }))],
      legend: { show: false },
      padding: [null, 64, null, null],
      hooks: { draw: [(chart) => markEvents(chart, this.events), (chart) => nameLines(chart, this.series)] },
    }, [[], ...this.series.map(() => [])], this.parent);
  }

  draw(columns, events) {
    this.events = events;
    const lines = this.series.map(({ column }) =>
      (columns.get(column) ?? []).map((v) => (v === null || (this.isLog && v <= 0) ? null : v * this.scale)));
    this.plot.setData([columns.get("round") ?? [], ...lines]);
  }

  resize() {
    const width = this.parent.clientWidth;
    if (width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
  }
}
