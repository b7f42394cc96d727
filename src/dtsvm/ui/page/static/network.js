// The network: nodes coloured by a number, a ring a task, links by disagreement.
// What changes with every round, the colours of links and nodes, is painted on a canvas; what stands
// still until something happens, and what is clicked, chosen and read aloud, is SVG above it.

const SIZE = 1000, MARGIN = 90, INNER = SIZE - 2 * MARGIN;
const LARGEST = 34, SMALLEST = 3;
// Of a node's radius: the first ring's distance, a ring's width, and from ring to ring.
const FIRST = 0.12, WIDTH = 0.15, STEP = 0.21;
const STOPS = [[44, 123, 182], [127, 185, 216], [240, 208, 96], [238, 138, 60], [199, 51, 31]];

// In forty steps: what the eye cannot tell apart is not drawn again.
export function colourAt(share) {
  const place = Math.round(40 * Math.min(Math.max(share, 0), 1)) / 40 * (STOPS.length - 1);
  const i = Math.min(Math.floor(place), STOPS.length - 2), f = place - i;
  const mix = STOPS[i].map((low, k) => Math.round(low + f * (STOPS[i + 1][k] - low)));
  return `rgb(${mix.join(",")})`;
}

function isDark(share) {
  return share < 0.18 || share > 0.85;
}

// 1e-5 and less is 0, 1 and more is 1.
export function logShare(value) {
  return value === null || value === undefined ? null : 1 + Math.log10(Math.max(value, 1e-5)) / 5;
}

function make(kind, attributes, parent) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  set(made, attributes);
  parent?.append(made);
  return made;
}

// Attributes are compared first: most of a frame is as it was.
function set(element, attributes) {
  const known = (element.known ??= {});
  for (const [name, value] of Object.entries(attributes)) {
    if (known[name] !== value) {
      element.setAttribute(name, value);
      known[name] = value;
    }
  }
}

// How far the nearest other node is; one node in ten may be nearer to another.
function spacing(places) {
  const nearest = places.map(([x, y], i) => Math.sqrt(places.reduce(
    (least, [u, v], j) => (i === j ? least : Math.min(least, (x - u) ** 2 + (y - v) ** 2)), 1)));
  return nearest.sort((a, b) => a - b)[Math.floor(nearest.length / 10)] ?? 1;
}

export class NetworkView {
  constructor(parent, onSelect) {
    this.onSelect = onSelect;
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    parent.append(this.canvas);
    this.svg = make("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group",
      "aria-label": "The network; arrow keys go from node to node, Enter chooses one" }, parent);
    this.nodes = new Map();
    this.order = [];
    this.height = SIZE;
    this.links = this.cores = [];
    this.svg.addEventListener("keydown", (event) => this.#onKey(event));
    new ResizeObserver(() => this.#resize()).observe(this.svg);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#paint());
  }

  // Words for screen readers follow when the rest of the page does.
  draw(frame, colour, tasks, selected, isSlow) {
    this.#fit(frame.nodes, tasks.length);
    const { radius } = this;
    const at = new Map(frame.nodes.map((node) => [node.name, this.#place(node.place)]));
    const shares = this.#drawNodes(frame.nodes, at, radius, colour, tasks, selected, isSlow);
    this.#drawColours(frame, at, radius, shares);
  }

  // A network that is wider than high gets a wide picture; nodes are as large as their places let them.
  #fit(nodes, nTasks) {
    const key = JSON.stringify([nTasks, nodes.map((node) => node.place)]);
    if (this.fitted === key) return;
    this.fitted = key;
    const ys = nodes.map((node) => node.place[1]);
    const low = Math.min(...ys), high = Math.max(...ys);
    this.low = low;
    this.height = Math.round(Math.max(0.3, high - low) * INNER + 2 * MARGIN);
    this.shift = high - low < 0.3 ? (0.3 - (high - low)) / 2 : 0;
    const room = INNER * spacing(nodes.map((node) => node.place));
    this.radius = Math.min(LARGEST, Math.max(SMALLEST, room / (2 * (1.1 + FIRST + STEP * nTasks))));
    set(this.svg, { viewBox: `0 0 ${SIZE} ${this.height}` });
  }

  #place([x, y]) {
    return [MARGIN + x * INNER, MARGIN + (y - this.low + this.shift) * INNER];
  }

  // Links and nodes by how they look, so that each look is painted in one go, and only if one changed.
  #drawColours(frame, at, radius, shares) {
    const links = new Map(), cores = new Map();
    const add = (map, key, value) => { map.has(key) ? map.get(key).push(value) : map.set(key, [value]); };
    for (const { ends, state, disagreement } of frame.links) {
      const [a, b] = ends.map((name) => at.get(name));
      if (!a || !b) continue;
      const share = logShare(disagreement);
      const look = state === "gone" ? "--rule 2 4 7" : state === "barred" ? "--bad 3 10 8" : share === null ? "--link 2"
        : `${colourAt(share)} ${3 + Math.round(8 * Math.min(Math.max(share, 0), 1)) / 2}`;
      add(links, look, [...a, ...b]);
    }
    frame.nodes.forEach((node, i) => {
      if (node.state === "gone") return;
      add(cores, shares[i] === null ? "--link" : colourAt(shares[i]), [...at.get(node.name), radius]);
    });
    const key = JSON.stringify([[...links], [...cores]]);
    if (this.painted === key) return;
    this.painted = key;
    this.links = [...links];
    this.cores = [...cores];
    this.#paint();
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.svg, ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.#paint();
  }

  // As the SVG above it: all of the picture, as large as fits, in the middle.
  #paint() {
    const { width, height } = this.canvas, ctx = this.canvas.getContext("2d");
    const scale = Math.min(width / SIZE, height / this.height);
    const style = getComputedStyle(this.svg);
    const ink = (name) => (name.startsWith("--") ? style.getPropertyValue(name) : name);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.setTransform(scale, 0, 0, scale, (width - scale * SIZE) / 2, (height - scale * this.height) / 2);
    ctx.lineCap = "round";
    for (const [look, lines] of this.links) {
      const [colour, thick, ...dash] = look.split(" ");
      ctx.strokeStyle = ink(colour);
      ctx.lineWidth = Number(thick);
      ctx.setLineDash(dash.map(Number));
      ctx.beginPath();
      for (const [x, y, u, v] of lines) { ctx.moveTo(x, y); ctx.lineTo(u, v); }
      ctx.stroke();
    }
    for (const [colour, circles] of this.cores) {
      ctx.fillStyle = ink(colour);
      ctx.beginPath();
      for (const [x, y, r] of circles) { ctx.moveTo(x + r, y); ctx.arc(x, y, r, 0, 2 * Math.PI); }
      ctx.fill();
    }
  }

  // Returns every node's share of the colours; what does not change is not touched.
  #drawNodes(nodes, at, radius, colour, tasks, selected, isSlow) {
    const seen = new Set();
    this.order = nodes.map((node) => node.name);
    const current = this.order.includes(selected) ? selected : this.order[0];
    const rings = JSON.stringify(tasks.map((task) => [task.name, task.colour, task.with.length]));
    const shares = nodes.map((node) => {
      const { name } = node, { share, words } = colour(node);
      seen.add(name);
      let drawn = this.nodes.get(name);
      if (!drawn) this.nodes.set(name, (drawn = this.#makeNode(name)));
      if (isSlow) set(drawn.group, { "aria-label": `node ${name}, ${words}` });
      const isLight = share !== null && isDark(share);
      const key = JSON.stringify([at.get(name), radius, isLight, node.state, name === selected,
        name === current, Object.keys(node.rows), rings]);
      if (drawn.key !== key) {
        drawn.key = key;
        set(drawn.group, { class: `node ${node.state}${name === selected ? " selected" : ""}`,
          tabindex: name === current ? 0 : -1, "aria-pressed": name === selected });
        this.#drawNode(drawn, node, at.get(name), radius, isLight, tasks);
      }
      return share;
    });
    for (const [name, drawn] of this.nodes) {
      if (!seen.has(name)) { drawn.group.remove(); this.nodes.delete(name); }
    }
    return shares;
  }

  #makeNode(name) {
    const group = make("g", { role: "button" }, this.svg);
    group.addEventListener("click", () => this.onSelect(name));
    group.dataset.node = name;
    const drawn = { group, halo: make("circle", { class: "halo" }, group), rings: [],
      core: make("circle", { class: "core" }, group), cross: make("path", { class: "cross" }, group),
      lie: make("path", { class: "lie" }, group), text: make("text", {}, group) };
    drawn.text.textContent = name.length > 18 ? `${name.slice(0, 17)}…` : name;
    return drawn;
  }

  #drawNode(drawn, node, [x, y], radius, isLight, tasks) {
    set(drawn.group, { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
    const held = tasks.filter((task) => task.name in node.rows), width = WIDTH * radius;
    const outer = radius * (1 + FIRST + STEP * held.length);
    set(drawn.core, { r: radius });
    set(drawn.halo, { r: outer + 0.2 * radius });
    while (drawn.rings.length < held.length) {
      drawn.rings.push(make("circle", { class: "ring" }));
      drawn.core.before(drawn.rings.at(-1));
    }
    drawn.rings.forEach((ring, i) => {
      const task = held[i];
      set(ring, { visibility: task ? "visible" : "hidden", r: radius * (1 + FIRST + i * STEP),
        "stroke-width": width, stroke: task ? `var(--task-${task.colour})` : "none",
        "stroke-dasharray": task?.with.length || width < 2.5 ? "none" : `${width} ${0.8 * width}` });
    });
    const half = radius * 0.9, sign = radius * 0.45, off = radius * 0.95;
    set(drawn.cross, { d: `M${-half} ${-half}L${half} ${half}M${half} ${-half}L${-half} ${half}` });
    set(drawn.lie, { d: `M${off - sign} ${-off + sign}h${2 * sign}l${-sign} ${-2 * sign}Z` });
    const below = outer + 20, isLong = node.name.length > 3;
    set(drawn.text, { "font-size": isLong ? 22 : radius * 0.95, y: isLong ? below : 0,
      visibility: radius > (isLong ? 30 : 14) ? "visible" : "hidden",
      fill: isLong ? "var(--ink)" : isLight ? "#fff" : "#16191d" });
  }

  #onKey(event) {
    const name = event.target.closest("[data-node]")?.dataset.node;
    if (!name) return;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      const next = this.order.at((this.order.indexOf(name) + step) % this.order.length);
      const { group } = this.nodes.get(next);
      this.nodes.get(name).group.setAttribute("tabindex", -1);
      group.setAttribute("tabindex", 0);
      group.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      this.onSelect(name);
    } else return;
    event.preventDefault();
  }
}
