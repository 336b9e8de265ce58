const PALETTE = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#edc948",
  "#ff9da7", "#86bcb6", "#d37295"];
const OTHER = "#a3a9b3";

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function drawing(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function duration(ms) {
  if (ms === 0) return "0";
  if (Math.abs(ms) < 1) return `${+(ms * 1e3).toPrecision(3)} µs`;
  return Math.abs(ms) < 1e3 ? `${+ms.toPrecision(3)} ms` : `${+(ms / 1e3).toPrecision(3)} s`;
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; count >= 1024 && unit < units.length - 1; ++unit) count /= 1024;
  return `${unit ? count.toFixed(1) : count} ${units[unit]}`;
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const rate = (value) => (value === null ? "" : value < 10 ? value.toFixed(1) : value.toFixed(0));

// columns: [[heading, class, cell of a row]]; a cell is a text or an element.
function fillTable(table, columns, rows) {
  const heading = element("tr", {}, ...columns.map(([name, kind]) =>
    element("th", kind === "number" ? { class: kind } : {}, name)));
  const lines = rows.map((row) => element("tr", {}, ...columns.map(([, kind, cell]) => {
    const content = cell(row);
    const td = element("td", kind ? { class: kind } : {}, content);
    if (kind === "name") td.title = td.textContent;
    return td;
  })));
  table.replaceChildren(element("thead", {}, heading), element("tbody", {}, ...lines));
}

function swatch(color, text) {
  return element("span", {}, element("span", { class: "swatch", style: `background:${color}` }), text);
}

function shareBar(share, color) {
  const width = Math.min(100 * share, 100);
  const fill = element("b", { style: `width:${width}%;background:${color}` });
  return element("span", {}, element("i", {}, fill), percent(share));
}

function showTip(about, event) {
  const tip = document.getElementById("tip");
  tip.hidden = !about;
  if (!about) return;
  const [title, lines] = about;
  tip.replaceChildren(element("b", {}, title), ...lines.filter(Boolean).flatMap((line) =>
    [element("span", {}, line), element("br")]));
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 18;
  const fits = below + tip.offsetHeight < window.innerHeight;
  tip.style.left = `${Math.max(left, 8)}px`;
  tip.style.top = `${fits ? below : event.clientY - tip.offsetHeight - 10}px`;
}

function showHead(profile) {
  const name = profile.model.split("/").pop();
  document.title = `Tenon profile: ${name}`;
  document.getElementById("model").textContent = name;
  const inputs = profile.inputs.map((one) => `${one.name}: ${one.type} [${one.shape.join(", ")}]`);
  document.getElementById("subtitle").textContent = [`Tenon ${profile.version}`,
    profile.thread_count ? `${profile.thread_count} thread${profile.thread_count > 1 ? "s" : ""}` : "", ...inputs].filter(Boolean).join(" · ");
  const { run_ms: run, runs, memory, nodes } = profile;
  const ready = profile.session.filter((one) =>
    one.name.startsWith("model_loading") || one.name === "session_initialization");
  const peak = Math.max(0, ...memory.map((one) => one.peak.bytes));
  const counted = nodes.filter((node) => node.ms > 0 || node.share > 0).length;
  const figures = [
    ["Typical run", duration(run.median), `${duration(run.min)} to ${duration(run.max)}`],
    ["Throughput", `${+(1e3 / run.median).toPrecision(3)} /s`, "one run after another"],
    ["First run", duration(run.first), `${runs.length} runs in all`],
    ["Loading", duration(ready.reduce((sum, one) => sum + one.ms, 0)), "reading and optimizing"],
    ["Peak memory", bytes(peak), "without the model's weights on file"],
    ["Nodes", String(counted || nodes.length), `${profile.operators.length} kinds of operator`],
  ];
  document.getElementById("figures").replaceChildren(...figures.map(([term, value, more]) =>
    element("div", {}, element("dt", {}, term),
      element("dd", {}, value, element("small", {}, more)))));
}

function showOperators(profile, colorOf) {
  const outside = { op_type: "outside nodes", provider: "", nodes: "", ms: profile.outside_ms,
    share: profile.outside_ms / (profile.outside_ms + profile.threads.node_ms || 1), gflops: null,
    gbytes: null };
  fillTable(document.querySelector("#operators table"), [
    ["Operator", "", (one) => swatch(one.provider ? colorOf(one.op_type) : OTHER, one.op_type)],
    ["Provider", "faint", (one) => one.provider.replace("ExecutionProvider", "")],
    ["Nodes", "number", (one) => String(one.nodes)],
    ["Time per run", "number", (one) => duration(one.ms)],
    ["Share of the run", "share", (one) =>
      shareBar(one.share, one.provider ? colorOf(one.op_type) : OTHER)],
    ["GFLOP/s", "number", (one) => rate(one.gflops)],
    ["GB/s", "number", (one) => rate(one.gbytes)],
  ], [...profile.operators, outside]);
}

function showNodes(profile, colorOf) {
  const few = 15;
  const filter = document.getElementById("filter"), more = document.getElementById("more");
  let all = false;
  const show = () => {
    const wanted = filter.value.toLowerCase();
    const found = profile.nodes.filter((node) =>
      `${node.name} ${node.op_type}`.toLowerCase().includes(wanted));
    fillTable(document.querySelector("#nodes table"), [
      ["Node", "name", (node) => swatch(colorOf(node.op_type), node.name)],
      ["Operator", "", (node) => node.op_type],
      ["Output", "faint name", (node) => node.outputs.join(", ")],
      ["Time per run", "number", (node) => duration(node.ms)],
      ["Share", "number", (node) => percent(node.share)],
      ["GFLOP/s", "number", (node) => rate(node.gflops)],
      ["GB/s", "number", (node) => rate(node.gbytes)],
    ], all ? found : found.slice(0, few));
    more.hidden = found.length <= few;
    more.textContent = all ? `Show ${few}` : `Show all ${found.length}`;
  };
  filter.addEventListener("input", show);
  more.addEventListener("click", () => {
    all = !all;
    show();
  });
  show();
}

function memoryChart(memory, runs) {
  const width = 1180, height = 220, left = 64, bottom = 24, top = 12;
  const last = Math.max(...[...memory.curve, ...memory.reserved].map(([ms]) => ms), 1e-3);
  const highest = Math.max(...memory.curve.map((p) => p[1]), ...memory.reserved.map((p) => p[1]), 1);
  const x = (ms) => left + (ms / last) * (width - left - 8);
  const y = (count) => top + (1 - count / highest) * (height - top - bottom);
  const steps = (points) => points.reduce((path, [ms, count], i) =>
    path + (i ? `H${x(ms).toFixed(1)}V${y(count).toFixed(1)}` : `M${x(ms).toFixed(1)},${y(count).toFixed(1)}`), "");
  const svg = drawing("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img",
    preserveAspectRatio: "none" });
  for (const run of runs) {
    svg.append(drawing("rect", { class: "run", x: x(run.start_ms), y: top,
      width: Math.max(x(run.start_ms + run.ms) - x(run.start_ms), 0.5), height: height - top - bottom }));
  }
  for (const share of [0, 0.5, 1]) {
    svg.append(drawing("line", { class: "grid", x1: left, x2: width - 8, y1: y(highest * share), y2: y(highest * share) }),
      drawing("text", { x: left - 8, y: y(highest * share) + 4, "text-anchor": "end" }, bytes(highest * share)));
  }
  for (const ms of ticks(0, last, 8)) {
    svg.append(drawing("text", { x: x(ms), y: height - 6, "text-anchor": "middle" }, duration(ms)));
  }
  if (memory.reserved.length) svg.append(drawing("path", { class: "reserved", d: steps(memory.reserved) }));
  if (memory.curve.length) {
    const path = steps(memory.curve);
    svg.append(drawing("path", { class: "used", d: `${path}L${x(memory.curve.at(-1)[0])},${y(0)}H${x(memory.curve[0][0])}Z` }));
  }
  const { ms, bytes: most } = memory.peak;
  svg.append(drawing("line", { class: "peak-line", x1: x(ms), x2: x(ms), y1: y(most), y2: height - bottom }),
    drawing("circle", { class: "peak", cx: x(ms), cy: y(most), r: 4 }));
  return svg;
}

function blocksTable(peak) {
  const table = element("table");
  fillTable(table, [
    ["Size", "number", (block) => bytes(block.bytes)],
    ["Share", "number", (block) => percent(block.bytes / peak.bytes)],
    ["What", "", (block) => block.what],
    ["Of node", "name", (block) => block.node || "–"],
    ["Operator", "", (block) => block.op_type],
    ["Tensor", "faint", (block) => block.tensor],
  ], peak.blocks.slice(0, 20));
  return element("div", { class: "scroll" }, table);
}

function showMemory(profile) {
  const section = document.getElementById("memory");
  if (!profile.memory.length) section.append(element("p", { class: "faint" }, "No memory was taken."));
  for (const memory of profile.memory) {
    section.append(element("h3", {}, `In use on ${memory.device} (grey: runs; dashed: held by arenas)`),
      memoryChart(memory, profile.runs));
    const peaks = [[memory.peak, "the peak"], [memory.first_run, "the first run's peak"]];
    for (const [peak, name] of peaks) {
      if (!peak || !peak.blocks.length) continue;
      const rest = peak.count > 20 ? `, the 20 largest of ${peak.count}` : "";
      section.append(element("h3", {},
        `Alive at ${name}: ${bytes(peak.bytes)} after ${duration(peak.ms)}${rest}`), blocksTable(peak));
    }
  }
}

function showThreads(profile) {
  const threads = profile.threads, whole = threads.node_ms || 1;
  const parts = [["working on loops that are divided", threads.loop_run_ms, PALETTE[0]],
    ["work that is not divided", threads.alone_ms, PALETTE[1]],
    ["waiting for other threads", threads.loop_wait_ms, PALETTE[3]],
    ["starting loops", threads.loop_start_ms, PALETTE[6]]];
  document.getElementById("threads-text").textContent =
    `What the calling thread did in the ${duration(threads.node_ms)} of a run's nodes:`;
  document.getElementById("threads-bar").append(...parts.map(([name, ms, color]) =>
    element("i", { style: `width:${(100 * ms) / whole}%;background:${color}`, title: `${name}: ${duration(ms)}` })));
  document.getElementById("threads-legend").append(...parts.map(([name, ms, color]) =>
    swatch(color, `${name}: ${duration(ms)} (${percent(ms / whole)})`)));
  const table = document.querySelector("#threads table");
  if (!threads.helpers.length) {
    table.replaceWith(element("p", { class: "faint" }, "No other thread helped."));
    return;
  }
  fillTable(table, [
    ["Thread that helped", "", (one) => one.thread],
    ["Runs of nodes", "number", (one) => String(one.nodes)],
    ["Blocks of loops", "number", (one) => String(one.blocks)],
    ["On CPUs", "", (one) => one.cores.join(", ")],
  ], threads.helpers);
}

function showLegend(profile, colorOf) {
  document.getElementById("legend").append(...profile.operators.slice(0, PALETTE.length)
    .map((one) => swatch(colorOf(one.op_type), one.op_type)), ...(profile.operators.length > PALETTE.length
    ? [swatch(OTHER, "others")] : []), element("span", { class: "faint" }, "White foot: several threads"));
}

function showFoot(profile) {
  document.querySelector("footer").append("The trace is ", element("code", {}, profile.trace),
    ": open it in Perfetto (ui.perfetto.dev) or chrome://tracing to see all of it. Averages are over all runs but the first. ",
    "GFLOP/s counts the arithmetic of products, convolutions, attention and recurrent layers; GB/s the bytes of inputs and outputs.");
}

{
  const profile = JSON.parse(document.getElementById("profile").textContent);
  const colors = new Map(profile.operators.slice(0, PALETTE.length).map((one, i) => [one.op_type, PALETTE[i]]));
  const colorOf = (operator) => colors.get(operator) || OTHER;
  showHead(profile);
  drawTimeline(profile, colorOf, showTip);
  showLegend(profile, colorOf);
  showOperators(profile, colorOf);
  showNodes(profile, colorOf);
  showMemory(profile);
  showThreads(profile);
  showFoot(profile);
}
