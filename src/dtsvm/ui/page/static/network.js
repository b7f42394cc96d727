// The network as SVG: nodes coloured by a number, a ring a task, links by disagreement.

const SIZE = 1000, MARGIN = 90;
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

export class NetworkView {
  constructor(parent, onSelect) {
    this.onSelect = onSelect;
    this.svg = make("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group",
      "aria-label": "The network; arrow keys go from node to node, Enter chooses one" }, parent);
    this.lines = make("g", {}, this.svg);
    this.groups = make("g", {}, this.svg);
    this.nodes = new Map();
    this.links = new Map();
    this.order = [];
    this.svg.addEventListener("keydown", (event) => this.#onKey(event));
  }

  // Words for screen readers follow when the rest of the page does.
  draw(frame, colour, tasks, selected, isSlow) {
    const radius = Math.max(6, Math.min(34, 300 / Math.sqrt(frame.nodes.length + 1)));
    const height = this.#fit(frame.nodes);
    const at = new Map(frame.nodes.map((node) => [node.name, this.#place(node.place, height)]));
    this.#drawLinks(frame.links, at);
    this.#drawNodes(frame.nodes, at, radius, colour, tasks, selected, isSlow);
  }

  // A network that is wider than high gets a wide picture.
  #fit(nodes) {
    const ys = nodes.map((node) => node.place[1]);
    const low = Math.min(...ys), high = Math.max(...ys);
    this.low = low;
    const height = Math.max(0.3, high - low) * (SIZE - 2 * MARGIN) + 2 * MARGIN;
    this.shift = high - low < 0.3 ? (0.3 - (high - low)) / 2 : 0;
    set(this.svg, { viewBox: `0 0 ${SIZE} ${Math.round(height)}` });
    return height;
  }

  #place([x, y]) {
    const inner = SIZE - 2 * MARGIN;
    return [MARGIN + x * inner, MARGIN + (y - this.low + this.shift) * inner];
  }

  #drawLinks(links, at) {
    const seen = new Set();
    for (const { ends, state, disagreement } of links) {
      const key = ends.join("\u0000");
      seen.add(key);
      let line = this.links.get(key);
      if (!line) this.links.set(key, (line = make("line", {}, this.lines)));
      const [a, b] = ends.map((name) => at.get(name));
      if (!a || !b) continue;
      const share = logShare(disagreement);
      set(line, { x1: a[0], y1: a[1], x2: b[0], y2: b[1], class: state,
        stroke: share === null ? "var(--link)" : colourAt(share),
        "stroke-width": share === null ? 2 : 3 + Math.round(8 * Math.min(Math.max(share, 0), 1)) / 2 });
    }
    for (const [key, line] of this.links) {
      if (!seen.has(key)) { line.remove(); this.links.delete(key); }
    }
  }

  #drawNodes(nodes, at, radius, colour, tasks, selected, isSlow) {
    const seen = new Set();
    this.order = nodes.map((node) => node.name);
    const current = this.order.includes(selected) ? selected : this.order[0];
    for (const node of nodes) {
      seen.add(node.name);
      let drawn = this.nodes.get(node.name);
      if (!drawn) this.nodes.set(node.name, (drawn = this.#makeNode(node.name)));
      this.#drawNode(drawn, node, at.get(node.name), radius, colour(node), tasks, isSlow);
      const isSelected = node.name === selected;
      set(drawn.group, { class: `node ${node.state}${isSelected ? " selected" : ""}`,
        tabindex: node.name === current ? 0 : -1, "aria-pressed": isSelected });
    }
    for (const [name, drawn] of this.nodes) {
      if (!seen.has(name)) { drawn.group.remove(); this.nodes.delete(name); }
    }
  }

  #makeNode(name) {
    const group = make("g", { role: "button" }, this.groups);
    group.addEventListener("click", () => this.onSelect(name));
    group.dataset.node = name;
    const drawn = { group, name, halo: make("circle", { class: "halo" }, group), rings: [],
      core: make("circle", { class: "core" }, group), cross: make("path", { class: "cross" }, group),
      lie: make("path", { class: "lie" }, group), text: make("text", {}, group) };
    drawn.text.textContent = name.length > 18 ? `${name.slice(0, 17)}…` : name;
    return drawn;
  }

  #drawNode(drawn, node, [x, y], radius, { share, words }, tasks, isSlow) {
    set(drawn.group, { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
    if (isSlow) set(drawn.group, { "aria-label": `node ${node.name}, ${words}` });
    const held = tasks.filter((task) => task.name in node.rows);
    const width = radius > 14 ? 5 : 2.5;
    set(drawn.core, { r: radius, fill: share === null ? "var(--link)" : colourAt(share) });
    set(drawn.halo, { r: radius + (width + 2) * held.length + 9 });
    while (drawn.rings.length < held.length) {
      drawn.rings.push(make("circle", { class: "ring" }));
      drawn.core.before(drawn.rings.at(-1));
    }
    drawn.rings.forEach((ring, i) => {
      const task = held[i];
      set(ring, { visibility: task ? "visible" : "hidden", r: radius + 4 + i * (width + 2),
        "stroke-width": width, stroke: task ? `var(--task-${task.colour})` : "none",
        class: task?.with.length || width < 5 ? "ring" : "ring alone" });
    });
    const half = radius * 0.9, sign = radius * 0.45, off = radius * 0.95;
    set(drawn.cross, { d: `M${-half} ${-half}L${half} ${half}M${half} ${-half}L${-half} ${half}` });
    set(drawn.lie, { d: `M${off - sign} ${-off + sign}h${2 * sign}l${-sign} ${-2 * sign}Z` });
    const below = radius + 4 + held.length * (width + 2) + 20, isLong = node.name.length > 4;
    const inside = share !== null && isDark(share) ? "#fff" : "#16191d";
    set(drawn.text, { "font-size": isLong ? 22 : radius * 0.95, y: isLong ? below : 0,
      visibility: radius > (isLong ? 30 : 9) ? "visible" : "hidden",
      fill: isLong ? "var(--ink)" : inside });
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
