"use strict";

// What ran when: a strip of the whole session, and the tracks of a part of it.
// `profile` is what the command knows; `colorOf` gives an operator's color, `tip` shows a text.
function drawTimeline(profile, colorOf, tip) {
  const { nodes, device, tracks: deviceTracks, end_us: end } = profile.timeline;
  const overview = document.getElementById("overview");
  const canvas = document.getElementById("tracks");
  const view = { start: 0, end: Math.max(end, 1) };
  const row = 24, gap = 6, labels = 96;

  // Spans by track: {start, length, label, color, about}.
  const rows = [];
  const addRow = (name, spans) => {
    if (spans.length) rows.push({ name, spans });
  };
  addRow("session", profile.session.map((one) => ({
    start: one.start_ms * 1e3, length: one.ms * 1e3, label: one.name, color: "#8b95a5",
    about: [one.name, [duration(one.ms)]],
  })));
  addRow("runs", profile.runs.map((run, i) => ({
    start: run.start_ms * 1e3, length: run.ms * 1e3, label: `run ${i + 1}`, color: "#5b6b85",
    about: [`Run ${i + 1}`, [duration(run.ms), run.status === "ok" ? "" : `status ${run.status}`]],
  })));
  const deepest = nodes.reduce((most, node) => Math.max(most, node[3]), 0);
  for (let depth = 0; depth <= deepest; ++depth) {
    addRow(depth === 0 ? "nodes" : `inner ${depth}`, nodes.filter((node) => node[3] === depth)
      .map(([start, length, index, , helpers]) => {
        const node = profile.nodes[index];
        const threads = helpers ? `${helpers + 1} threads` : "1 thread";
        return { start, length, helpers, label: node.name, color: colorOf(node.op_type),
          about: [node.name, [`${node.op_type} · ${duration(length / 1e3)} · ${threads}`,
            `${node.inputs.join(", ")} → ${node.outputs.join(", ")}`]] };
      }));
  }
  deviceTracks.forEach((name, track) => addRow(name, device
    .filter((span) => span[3] === track).map(([start, length, label]) => ({
      start, length, label, color: "#9c755f", about: [label, [name, duration(length / 1e3)]],
    }))));
  const height = rows.length * (row + gap) + 22;

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
  const prepare = (target, pixels) => {
    const scale = window.devicePixelRatio || 1;
    const width = target.clientWidth;
    target.style.height = `${pixels}px`;
    target.width = Math.round(width * scale);
    target.height = Math.round(pixels * scale);
    const context = target.getContext("2d");
    context.scale(scale, scale);
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    return { context, width };
  };
  const isDark = (color) => {
    const part = (at) => parseInt(color.slice(at, at + 2), 16);
    return part(1) * 0.3 + part(3) * 0.59 + part(5) * 0.11 < 150;
  };

  function drawOverview() {
    const { context, width } = prepare(overview, 34);
    const at = (time) => (time / end) * width;
    context.fillStyle = style("--track");
    context.fillRect(0, 0, width, 34);
    for (const { spans } of rows) {
      for (const span of spans) {
        if (span.label.startsWith("session_")) continue;
        context.fillStyle = span.color;
        context.fillRect(at(span.start), 6, Math.max(at(span.length), 0.5), 22);
      }
    }
    context.fillStyle = style("--accent");
    context.globalAlpha = 0.18;
    context.fillRect(at(view.start), 0, Math.max(at(view.end) - at(view.start), 2), 34);
    context.globalAlpha = 1;
    context.strokeStyle = style("--accent");
    context.lineWidth = 1.5;
    context.strokeRect(at(view.start) + 0.75, 0.75,
      Math.max(at(view.end) - at(view.start), 3) - 1.5, 32.5);
  }

  function drawTracks() {
    const { context, width } = prepare(canvas, height);
    const scale = (width - labels) / (view.end - view.start);
    const at = (time) => labels + (time - view.start) * scale;
    context.strokeStyle = style("--line");
    context.fillStyle = style("--faint");
    const times = ticks(view.start, view.end, Math.max(Math.floor(width / 140), 2));
    const step = (times[1] - times[0] || 1) / 1e3;
    const digits = Math.max(0, -Math.floor(Math.log10(step)));
    for (const time of times) {
      context.beginPath();
      context.moveTo(at(time), 18);
      context.lineTo(at(time), height);
      context.stroke();
      context.fillText(`${(time / 1e3).toFixed(digits)} ms`, at(time) + 4, 9);
    }
    rows.forEach(({ name, spans }, i) => {
      const top = 22 + i * (row + gap);
      context.fillStyle = style("--track");
      context.fillRect(labels, top, width - labels, row);
      context.save();
      context.beginPath();
      context.rect(labels, top, width - labels, row);
      context.clip();
      for (const span of spans) {
        const left = at(span.start), wide = span.length * scale;
        if (left + wide < labels || left > width) continue;
        context.fillStyle = span.color;
        context.fillRect(left, top, Math.max(wide - (wide > 4 ? 0.6 : 0), 0.6), row);
        if (span.helpers) {
          context.fillStyle = "rgb(255 255 255 / 55%)";
          context.fillRect(left, top + row - 3, Math.max(wide, 0.6), 3);
        }
        const from = Math.max(left, labels) + 5;
        const space = Math.min(left + wide, width) - from - 4;
        if (space > 24) {
          context.fillStyle = isDark(span.color) ? "#ffffff" : "#1c2430";
          context.fillText(fitting(context, span.label, space), from, top + row / 2);
        }
      }
      context.restore();
      context.fillStyle = style("--faint");
      context.fillText(fitting(context, name, labels - 10), 0, top + row / 2);
    });
  }

  function draw() {
    drawOverview();
    drawTracks();
  }

  function show(from, to) {
    const length = Math.min(Math.max(to - from, 5), end);
    view.start = Math.min(Math.max(from, 0), end - length);
    view.end = view.start + length;
    draw();
  }
  const showRun = (run) => show(run.start_ms * 1e3 - run.ms * 20, (run.start_ms + run.ms * 1.02) * 1e3);
  const zoomBy = (factor, center = (view.start + view.end) / 2) =>
    show(center - (center - view.start) * factor, center + (view.end - center) * factor);

  const spanAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const line = Math.floor((event.clientY - box.top - 22) / (row + gap));
    if (!rows[line] || event.clientX - box.left < labels) return null;
    const perPixel = (view.end - view.start) / (box.width - labels);
    const time = view.start + (event.clientX - box.left - labels) * perPixel;
    return rows[line].spans.findLast((span) =>
      span.start <= time + perPixel && time <= span.start + span.length + perPixel);
  };
  let dragged = null;
  canvas.addEventListener("pointerdown", (event) => {
    dragged = { x: event.clientX, start: view.start, end: view.end };
    canvas.setPointerCapture(event.pointerId);
    canvas.classList.add("moving");
  });
  canvas.addEventListener("pointermove", (event) => {
    if (dragged) {
      const perPixel = (dragged.end - dragged.start) / (canvas.clientWidth - labels);
      const moved = (dragged.x - event.clientX) * perPixel;
      show(dragged.start + moved, dragged.end + moved);
    }
    const span = dragged ? null : spanAt(event);
    tip(span ? span.about : null, event);
  });
  const release = () => {
    dragged = null;
    canvas.classList.remove("moving");
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", (event) => tip(null, event));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - labels) / (box.width - labels);
    zoomBy(event.deltaY > 0 ? 1.25 : 0.8, view.start + (view.end - view.start) * share);
  }, { passive: false });

  let chosen = null;
  const timeIn = (event) => {
    const box = overview.getBoundingClientRect();
    return ((event.clientX - box.left) / box.width) * end;
  };
  overview.addEventListener("pointerdown", (event) => {
    chosen = timeIn(event);
    overview.setPointerCapture(event.pointerId);
  });
  overview.addEventListener("pointermove", (event) => {
    if (chosen === null || Math.abs(timeIn(event) - chosen) < end / 200) return;
    show(Math.min(chosen, timeIn(event)), Math.max(chosen, timeIn(event)));
  });
  overview.addEventListener("pointerup", (event) => {
    const half = (view.end - view.start) / 2;
    if (Math.abs(timeIn(event) - chosen) < end / 200) show(chosen - half, chosen + half);
    chosen = null;
  });

  const runs = profile.runs;
  const sorted = runs.slice(1).sort((a, b) => a.ms - b.ms);
  const typical = sorted[Math.floor(sorted.length / 2)] || runs[0];
  const buttons = [["Session", () => show(0, end)], ["First run", () => showRun(runs[0])],
    ["Typical run", () => showRun(typical)], ["−", () => zoomBy(2)], ["+", () => zoomBy(0.5)]];
  for (const [name, action] of buttons) {
    const button = element("button", {}, name);
    button.addEventListener("click", action);
    document.getElementById("zoom").append(button);
  }
  showRun(typical);
  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

// As much of a text as fits.
function fitting(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = Math.floor((text.length * width) / context.measureText(text).width);
  while (length > 0 && context.measureText(`${text.slice(0, length)}…`).width > width) --length;
  return length > 0 ? `${text.slice(0, length)}…` : "";
}

// Round numbers in [from, to], about `count` of them.
function ticks(from, to, count) {
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}
