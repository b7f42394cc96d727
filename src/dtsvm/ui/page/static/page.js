// Frames in, page out: the stream is read, the view kept, and buttons turned into requests.
import { Chart } from "./charts.js";
import { NetworkView, logShare } from "./network.js";

const $ = (id) => document.getElementById(id);
const view = { frame: null, columns: new Map(), next: 0, selected: null, colour: "" };
const pictures = {};
const network = new NetworkView($("network"), choose);

// Numbers as words

const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);
function small(value) {
  if (value === null || value === undefined) return "–";
  return value !== 0 && Math.abs(value) < 1e-2 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function fill(parent, items, make) {
  const key = JSON.stringify(items);
  if (parent.filled === key) return;
  parent.filled = key;
  parent.replaceChildren(...items.map(make));
}

function element(kind, text = "", attributes = {}) {
  const made = document.createElement(kind);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// The stream

function listen() {
  const stream = new EventSource("/frames");
  stream.onmessage = ({ data }) => take(JSON.parse(data));
  stream.onerror = () => say("lost", "connection lost");
}

function take(frame) {
  const { columns, start, rows, next, is_whole: isWhole } = frame.history;
  if (isWhole || start !== view.next) view.columns = new Map(columns.map((name) => [name, []]));
  for (const row of rows) columns.forEach((name, i) => view.columns.get(name).push(row[i]));
  view.next = next;
  view.frame = frame;
  frame.tasks.forEach((task, i) => { task.colour = i % 8; });
  draw();
}

function say(kind, words) {
  write($("state"), words);
  $("state").className = `state ${kind}`;
}

// Drawing

let drawnSlowly = -1e9;

// What is off the screen is not drawn.
const seen = new Set();
const lookout = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) isIntersecting ? seen.add(target) : seen.delete(target);
  drawnSlowly = -1e9;
  draw();
}, { rootMargin: "200px" });

function draw() {
  const { frame } = view;
  if (!frame) return;
  document.title = `${frame.title} · dtsvm`;
  write($("title"), frame.title);
  $("story").hidden = !frame.story;
  write($("story"), frame.story ?? "");
  drawProgress(frame.progress);
  say(frame.state, frame.state);
  drawNumbers(frame);
  drawColours(frame);
  const now = performance.now(), isSlow = now - drawnSlowly >= 490;
  network.draw(frame, nodeColour(), frame.tasks, view.selected, isSlow);
  if (!isSlow) { later(); return; }
  drawnSlowly = now;
  drawCharts(frame);
  if (seen.has($("table"))) drawTable(frame);
  drawLists(frame);
  drawAdvice(frame);
  drawControls(frame);
}

// What is drawn seldom must still be drawn when the last frame has come.
let timer = null;
function later() {
  timer ??= setTimeout(() => { timer = null; draw(); }, 500);
}

function drawProgress(progress) {
  $("progress").hidden = !progress;
  if (!progress) return;
  write($("progress-words"), progress.sentence);
  $("progress-bar").hidden = progress.done === progress.of;
  $("progress-bar").max = progress.of;
  $("progress-bar").value = progress.done;
}

function drawNumbers(frame) {
  write($("round"), frame.round.toLocaleString("en"));
  write($("gap"), small(frame.gap));
  write($("residual"), small(frame.residual));
  for (const task of frame.tasks) {
    if (task.risk === null) continue;
    const id = `risk-${task.name}`;
    if (!$(id)) {
      const box = element("div");
      box.append(element("dt", `risk of ${task.name}`), element("dd", "", { id }));
      $("numbers").append(box);
    }
    const aim = task.state === "gone" ? "has left" : task.optimum === null || task.optimum === undefined ? "" : `optimum ${percent(task.optimum)}`;
    const words = percent(task.risk);
    if ($(id).shown === words + aim) continue;
    $(id).shown = words + aim;
    $(id).replaceChildren(words, " ", element("span", aim, { class: "aim" }));
  }
}

function drawColours(frame) {
  const risky = frame.tasks.filter((task) => task.risk !== null).map((task) => task.name);
  const choices = [...risky.map((name) => [`risk ${name}`, `risk of ${name}`]), ["residual", "residual"]];
  fill($("colour"), choices, ([value, words]) => element("option", words, { value }));
  if (!choices.some(([value]) => value === view.colour)) view.colour = choices[0][0];
  if ($("colour").value !== view.colour) $("colour").value = view.colour;
  const isRisk = view.colour !== "residual";
  write($("low"), isRisk ? "risk 0 %" : "residual 1e-5");
  write($("high"), isRisk ? "50 %" : "1");
  fill($("rings"), frame.tasks.filter((task) => task.state === "present").map(({ name, colour, with: others }) => [name, colour, others]),
    ([name, colour, others]) => {
      const key = element("span", "", { class: "ring-key" });
      const mark = element("i");
      mark.style.borderColor = `var(--task-${colour})`;
      if (!others.length) mark.style.borderStyle = "dotted";
      key.append(mark, others.length ? `${name} with ${others.join(", ")}` : `${name} alone`);
      return key;
    });
}

function nodeColour() {
  const task = view.colour.startsWith("risk ") ? view.colour.slice(5) : null;
  return (node) => {
    if (node.state === "gone") return { share: null, words: "gone" };
    const risk = task === null ? undefined : node.risk[task];
    const state = node.state === "present" ? "" : `${node.state}, `;
    if (task !== null) return { share: risk === undefined ? null : 2 * risk, words: `${state}risk of ${task} ${percent(risk)}` };
    return { share: logShare(node.residual), words: `${state}residual ${small(node.residual)}` };
  };
}

function drawCharts(frame) {
  const risky = frame.history.columns.filter((name) => name.startsWith("risk ")).map((name) => name.slice(5));
  $("risk-figure").hidden = !risky.length;
  if (risky.length && !pictures.risk) {
    const colour = (name) => `--task-${frame.tasks.findIndex((task) => task.name === name) % 8}`;
    pictures.risk = new Chart($("risk-chart"), [
      ...risky.map((name) => ({ label: name, column: `risk ${name}`, colour: colour(name) })),
      ...risky.map((name) => ({ label: `optimum ${name}`, column: `optimum ${name}`, colour: colour(name), isDashed: true })),
    ], { unit: " %", scale: 100 });
  }
  pictures.gap ??= new Chart($("gap-chart"), [
    { label: "gap", column: "gap", colour: "--accent" },
    { label: "residual", column: "residual", colour: "--bad" },
  ], { isLog: true });
  pictures.risk?.draw(view.columns, frame.events);
  pictures.gap.draw(view.columns, frame.events);
  $("gap-chart").setAttribute("aria-label", `Round ${frame.round}: certified gap ${small(frame.gap)}, residual ${small(frame.residual)}`);
  $("risk-chart").setAttribute("aria-label", frame.tasks.map((task) => `risk of ${task.name} ${percent(task.risk)}, optimum ${percent(task.optimum)}`).join("; "));
}

const rows = new Map();

function drawTable(frame) {
  const tasks = frame.tasks.filter((task) => task.state === "present");
  const hasRisk = tasks.some((task) => task.risk !== null);
  const heads = ["node", "state", "residual", ...tasks.map(({ name }) => (hasRisk ? `${name} (rows)` : `rows of ${name}`))];
  fill($("nodes-head"), [heads], (names) => {
    const row = element("tr");
    row.append(...names.map((name) => element("th", name, { scope: "col" })));
    return row;
  });
  const named = new Set();
  for (const node of frame.nodes) {
    named.add(node.name);
    let row = rows.get(node.name);
    if (!row) {
      row = element("tr");
      const button = element("button", node.name, { type: "button" });
      button.addEventListener("click", () => choose(node.name));
      row.append(element("td"));
      row.firstChild.append(button);
      rows.set(node.name, row);
      $("nodes-body").append(row);
    }
    row.className = `${node.state}${node.name === view.selected ? " selected" : ""}`;
    row.firstChild.firstChild.setAttribute("aria-pressed", node.name === view.selected);
    const held = (name) => (hasRisk ? `${percent(node.risk[name])} (${node.rows[name]})` : String(node.rows[name]));
    const state = node.detail ? `${node.state} ${node.detail}` : node.state;
    const cells = [state, small(node.residual), ...tasks.map(({ name }) => (name in node.rows ? held(name) : "–"))];
    while (row.children.length < cells.length + 1) row.append(element("td"));
    while (row.children.length > cells.length + 1) row.lastChild.remove();
    cells.forEach((text, i) => write(row.children[i + 1], text));
  }
  for (const [name, row] of rows) if (!named.has(name)) { row.remove(); rows.delete(name); }
}

function drawLists(frame) {
  const none = [{ nothing: true }];
  fill($("events"), frame.events.length ? [...frame.events].reverse() : none, (event) => {
    if (event.nothing) return element("li", "nothing has happened yet", { class: "soft" });
    const line = element("li");
    line.append(element("b", `round ${event.round.toLocaleString("en")}`), ` ${event.kind}: ${event.detail}`);
    return line;
  });
  fill($("refused"), frame.refused.length ? [...frame.refused].reverse() : none, (sentence) =>
    sentence.nothing ? element("li", "nothing", { class: "soft" }) : element("li", sentence));
  const chosen = [...frame.settings];
  if (frame.loss !== undefined) chosen.push(["loss", `${Math.round(100 * frame.loss)} %`, "share of messages that get lost"]);
  fill($("settings"), chosen.flatMap(([name, value, why]) => [["dt", name, ""], ["dd", value, ""], ["dd", why, "why"]]),
    ([kind, text, role]) => element(kind, text, role ? { class: role } : {}));
}

// An interval as a line with a dot: shares from 0 to `most` over 96 % of the picture's width.
const across = (share, most) => `${(2 + (96 * Math.min(share, most)) / most).toFixed(2)}%`;

function intervalMark(kind, [share, low, high], y, most) {
  return `<g class="${kind}-mark"><line x1="${across(low, most)}" x2="${across(high, most)}" y1="${y}" y2="${y}"/>`
    + `<circle cx="${across(share, most)}" cy="${y}" r="5"/></g>`;
}

function drawAdvice(frame) {
  const advice = frame.advice ?? [];
  $("advice-section").hidden = !advice.length;
  write($("advice-head"), frame.advice_head ?? "Should they train together?");
  $("unseen-words").hidden = advice.every(({ unseen }) => unseen === null);
  const most = Math.max(0.05, ...advice.flatMap(({ alone, together, unseen }) => [alone[2], together[2], unseen ?? 0]));
  fill($("advice"), advice, ({ sentence, alone, together, unseen }) => {
    const box = element("div");
    const words = `alone ${percent(alone[0])}, together ${percent(together[0])}`
      + (unseen === null ? "" : `, on test rows ${percent(unseen)}`);
    box.append(element("p", sentence));
    if (alone[0] === null || together[0] === null) return box;
    const picture = element("div", "", { role: "img", "aria-label": words });
    picture.innerHTML = `<svg>${intervalMark("apart", alone, 12, most)}${intervalMark("joined", together, 30, most)}`
      + (unseen === null ? "" : `<text class="unseen-mark" x="${across(unseen, most)}" y="30">×</text>`)
      + `<text x="2%" y="50">0 %</text><text x="98%" y="50" text-anchor="end">${percent(most)}</text></svg>`;
    box.append(picture);
    return box;
  });
}

// Controls

function drawControls(frame) {
  $("controls").hidden = !frame.can_change;
  if (!frame.can_change) return;
  const may = new Set(frame.actions);
  document.querySelectorAll("[data-needs]").forEach((part) => { part.hidden = !may.has(part.dataset.needs); });
  const names = frame.nodes.map((node) => node.name);
  fill($("node"), names, (name) => element("option", name));
  if (!names.includes(view.selected)) view.selected = names[0] ?? null;
  if ($("node").value !== view.selected) $("node").value = view.selected;
  fill($("other"), names.filter((name) => name !== view.selected), (name) => element("option", name));
  const chosen = frame.nodes.find((node) => node.name === view.selected);
  document.querySelectorAll("button[data-do]").forEach((button) => {
    const action = button.dataset.do;
    button.hidden = action !== "pause" ? !may.has(action) : !may.has("pause");
    button.disabled = !fits(button.dataset.for, chosen?.state, action);
  });
  const pause = document.querySelector("#run-controls button");
  write(pause, frame.state === "paused" ? "go on" : "pause");
  drawTaskControls(frame, may);
  $("run-controls").hidden = !may.has("pause");
  if (frame.loss !== undefined && document.activeElement !== $("loss")) {
    $("loss").value = Math.round(100 * frame.loss);
    write($("loss-shown"), `${$("loss").value} %`);
  }
  if (frame.speed !== undefined && document.activeElement !== $("pace")) {
    $("pace").value = Math.log10(frame.speed);
    write($("pace-shown"), String(Number(frame.speed.toPrecision(2))));
  }
}

function fits(kind, state, action) {
  if (action === "add") return state !== "gone";
  if (!kind) return true;
  if (kind === "honest") return state === "present";
  return kind === "present" ? state !== "gone" && state !== undefined : state === kind;
}

function drawTaskControls(frame, may) {
  const lines = frame.tasks.map(({ name, state, with: others }) => [name, state, others]);
  const ticked = new Set([...document.querySelectorAll("#task-list input:checked")].map((box) => box.value));
  fill($("task-list"), lines, ([name, state, others]) => {
    const line = element("div", "", { class: "task-line" });
    const label = element("label", "");
    const box = element("input", "", { type: "checkbox", value: name });
    box.checked = ticked.has(name) && state === "present";
    box.disabled = state !== "present";
    label.append(box, name);
    line.append(label, element("span", state === "present" ? (others.length ? `with ${others.join(", ")}` : "alone") : "has left", { class: "soft" }));
    const group = element("span", "", { class: "buttons" });
    line.append(group);
    const buttons = [["decouple", others.length > 0], ["leave", state === "present"], ["enter", state !== "present"]];
    for (const [action, isShown] of buttons) {
      if (!may.has(action) || !isShown) continue;
      const button = element("button", action, { type: "button", "aria-label": `${action} ${name}` });
      button.addEventListener("click", () => ask(action, { task: name }));
      group.append(button);
    }
    return line;
  });
}

function choose(name) {
  view.selected = name;
  drawnSlowly = -1e9;
  draw();
}

async function ask(action, what) {
  const answer = await fetch("/do", { method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ action, what }) });
  const { said, refused } = await answer.json();
  $("said").hidden = false;
  $("said").className = refused ? "said refused" : "said";
  write($("said"), refused ? `Refused: ${refused}` : said);
  clearTimeout(ask.timer);
  ask.timer = setTimeout(() => { $("said").hidden = true; }, 6000);
}

function asked(action) {
  const node = $("node").value, other = $("other").value, split = $("split").checked;
  switch (action) {
    case "kill": return [action, { node, split }];
    case "unlink": return [action, { node, other, split }];
    case "link": return [action, { node, other }];
    case "add": return [action, { beside: node }];
    case "couple": return [action, { tasks: [...document.querySelectorAll("#task-list input:checked")].map((box) => box.value) }];
    case "advise": return [action, {}];
    case "pause": return [view.frame.state === "paused" ? "resume" : "pause", {}];
    default: return [action, { node }];
  }
}

document.querySelectorAll("button[data-do]").forEach((button) => {
  button.type = "button";
  button.addEventListener("click", () => ask(...asked(button.dataset.do)));
});
$("colour").addEventListener("change", () => { view.colour = $("colour").value; draw(); });
$("node").addEventListener("change", () => choose($("node").value));
$("loss").addEventListener("input", () => write($("loss-shown"), `${$("loss").value} %`));
$("loss").addEventListener("change", () => ask("lose", { share: $("loss").value / 100 }));
const pace = () => Math.max(1, Math.round(10 ** $("pace").value));
$("pace").addEventListener("input", () => write($("pace-shown"), String(pace())));
$("pace").addEventListener("change", () => ask("pace", { rounds: pace() }));
lookout.observe($("table"));
listen();
