"use strict";
// Runs: traces and their keys, compile times, the timeline of a call, memory, recorded calls.
(() => {
  const {h, svg} = fusec;
  const MOST_ARRAYS = 60, MOST_ROWS = 200;
  const KINDS = {call: "#c9d3de", trace: "#9fb3c8", passes: "#7b93ac", codegen: "#5d7793", compile: "#41597a",
    imports: "#b5c3d1", task: "#f0e442", kernel: "#e69f00", library: "#d55e00", control: "#cc79a7",
    copy: "#009e73", wait: "#dddddd"};

  fusec.views.runs = async () => {
    const [runs, sources] = await Promise.all([fusec.part("runs"), fusec.part("sources")]);
    const {head} = fusec.state, compiled = head.traces.length ? runs : null;
    const search = fusec.searchField(() => document.getElementById("main"), "search traces and calls");
    return {element: h("div.runs", null, h("div.bar", null, search),
      traces(head), compiled ? [stages(compiled), compiled.not_measured ? h("p.fine", null,
        `Calls are not measured: ${compiled.not_measured}.`) : null, timeline(compiled, sources), memory(compiled.memory)] : null,
      launches(head.launches))};
  };

  // -- traces

  function traces(head) {
    const keys = head.keys;
    if (!keys.length) return h("p.fine", null, "No trace: this page is of a stage before the code.");
    const varying = varied(keys);
    return h("section", null, h("h2", null, fusec.plural(keys.length, "trace")),
      head.left_out ? h("p.fine", null, `The page has the stages of the newest ${head.traces.length}.`) : null,
      varying.length ? [h("p", null, "They differ in ", varying.map(([path, values], i) => [i ? ", " : "",
        h("code", null, path), ` (${fusec.plural(values.size, "kind")})`])), tree(keys, varying)] : null,
      h("table.data", null, h("thead", null, h("tr", null, ["", "why it was traced", "signature"].map((t) => h("th", null, t)),
        h("th.num", null, "found again"), h("th.num", null, "compiled in"))),
      h("tbody", null, keys.slice(-MOST_ROWS).map((key, i) => {
        const number = Math.max(0, keys.length - MOST_ROWS) + i, shown = number - head.left_out;
        return h("tr", {"data-row": true, class: shown === fusec.state.trace ? "chosen" : null},
          h("td", null, shown >= 0 ? h("a", {href: `#overview?trace=${shown}`}, String(number + 1)) : String(number + 1)),
          h("td", null, key.reason), h("td", null, h("code", null, key.signature)),
          h("td.num", null, fusec.number(key.hits)), h("td.num", null, `${key.ms.toFixed(1)} ms`));
      }))));
  }

  // The arguments whose part of the key is not the same in all traces.
  function varied(keys) {
    const values = new Map();
    for (const key of keys) for (const [path, part] of key.parts) {
      if (!values.has(path)) values.set(path, new Set());
      values.get(path).add(part);
    }
    const counts = new Map();
    for (const key of keys) for (const [path] of key.parts) counts.set(path, (counts.get(path) || 0) + 1);
    return [...values].filter(([path, set]) => set.size > 1 || counts.get(path) < keys.length)
      .sort((a, b) => a[1].size - b[1].size).slice(0, 6);
  }

  function tree(keys, varying) {
    const level = (group, depth) => {
      if (depth === varying.length) return null;
      const [path] = varying[depth], parts = new Map();
      for (const key of group) {
        const part = (key.parts.find(([p]) => p === path) || [path, "absent"])[1];
        parts.set(part, [...(parts.get(part) || []), key]);
      }
      return [...parts].slice(0, 40).map(([part, inside]) => h("details", {open: depth < 1 && parts.size <= 12},
        h("summary", null, h("code", null, `${path}: ${part}`), ` ${fusec.plural(inside.length, "trace")}`),
        h("div.inner", null, level(inside, depth + 1) || inside.map((key) => h("p", null, key.reason)))));
    };
    return h("div.tree", {"aria-label": "tree of keys"}, level(keys, 0));
  }

  // -- times

  function stages(runs) {
    const parts = Object.entries(runs.times).filter(([, ms]) => ms > 0);
    const total = parts.reduce((sum, [, ms]) => sum + ms, 0);
    let x = 0;
    const palette = ["#0072b2", "#56b4e9", "#009e73", "#e69f00", "#cc79a7", "#d55e00", "#999999"];
    return h("section", null, h("h2", null, `Compiled in ${total.toFixed(1)} ms`),
      svg("svg", {viewBox: "0 0 700 26", class: "plot wide", role: "img", "aria-label": "compile time by stage"},
        parts.map(([name, ms], i) => {
          const width = 700 * ms / total, left = x;
          x += width;
          return svg("rect", {x: left, y: 2, width: Math.max(0.5, width - 1), height: 22, rx: 3,
            fill: palette[i % palette.length], "data-tip": `${name}: ${ms.toFixed(2)} ms`});
        })),
      h("p.keys", null, parts.map(([name, ms], i) => h("span", null,
        h("i", {style: `background:${palette[i % palette.length]}`}), `${name} ${ms.toFixed(1)} ms`))));
  }

  function timeline(runs, sources) {
    const events = (runs.events || []).filter((e) => e.ph === "X");
    if (!events.length) return null;
    const start = Math.min(...events.map((e) => e.ts)), end = Math.max(...events.map((e) => e.ts + e.dur));
    const names = new Map(runs.events.filter((e) => e.name === "process_name").map((e) => [e.pid, e.args.name]));
    const rows = new Map();
    for (const e of events.sort((a, b) => a.ts - b.ts || b.dur - a.dur)) {
      const key = `${e.pid}/${e.tid}`;
      if (!rows.has(key)) rows.set(key, {title: names.get(e.pid) || "", spans: [], ends: [], deep: 0});
      const row = rows.get(key);
      while (row.ends.length && row.ends.at(-1) <= e.ts + 1e-3) row.ends.pop();
      row.spans.push([e, row.ends.length]);
      row.ends.push(e.ts + e.dur);
      row.deep = Math.max(row.deep, row.ends.length);
    }
    const LEFT = 150, WIDTH = 980, BAR = 19;
    const spans = svg("g"), titles = svg("g");
    let y = 22;
    const placed = [];
    for (const row of rows.values()) {
      titles.append(svg("text", {x: LEFT - 8, y: y + 13, "text-anchor": "end"}, row.title.slice(0, 24)));
      for (const [e, depth] of row.spans) {
        const line = e.args && e.args.line ? ` ${fusec.short(e.args.line)}` : "";
        const rect = svg("rect", {y: y + depth * BAR, height: BAR - 2, rx: 2, fill: KINDS[e.cat] || "#bbbbbb"});
        const text = svg("text", {y: y + depth * BAR + 12, class: "span"});
        const mark = svg("a", {href: target(e), "data-tip": `${e.name} (${e.cat}): ${fusec.micro(e.dur)}${line}`}, rect, text);
        spans.append(mark);
        placed.push([e, rect, text]);
      }
      y += row.deep * BAR + 12;
    }
    const axis = svg("g"), picture = svg("svg", {viewBox: `0 0 ${LEFT + WIDTH + 10} ${y + 6}`, class: "plot wide timeline",
      tabindex: 0, role: "group", "aria-label": "timeline of a call; + and - zoom, arrows move"});
    const clip = svg("clipPath", {id: "spans"}, svg("rect", {x: LEFT, y: 0, width: WIDTH, height: y}));
    picture.append(clip, axis, titles, svg("g", {"clip-path": "url(#spans)"}, spans));
    const put = (k, shift) => {
      const at = (us) => LEFT + shift + k * WIDTH * (us - start) / Math.max(end - start, 1e-9);
      for (const [e, rect, text] of placed) {
        const left = at(e.ts), width = Math.max(1, at(e.ts + e.dur) - left);
        rect.setAttribute("x", left);
        rect.setAttribute("width", width);
        const from = Math.max(left, LEFT), room = Math.min(left + width, LEFT + WIDTH) - from;
        text.textContent = room > 6.4 * e.name.length + 8 ? e.name : "";
        text.setAttribute("x", from + 4);
      }
      axis.replaceChildren(...[0, 1, 2, 3, 4, 5].map((i) => svg("text", {x: LEFT + i * WIDTH / 5, y: 13,
        "text-anchor": i === 5 ? "end" : "middle"}, fusec.micro((i * WIDTH / 5 - shift) / k / WIDTH * (end - start)))));
    };
    const zoom = d3.zoom().scaleExtent([1, 2000]).translateExtent([[0, 0], [WIDTH, 1]]).extent([[0, 0], [WIDTH, 1]])
      .filter((event) => event.type !== "wheel" || event.ctrlKey || event.shiftKey)
      .on("zoom", ({transform}) => put(transform.k, transform.x));
    d3.select(picture).call(zoom);
    picture.addEventListener("keydown", (event) => {
      const by = {"+": 1.5, "=": 1.5, "-": 1 / 1.5}[event.key], move = {ArrowLeft: 80, ArrowRight: -80}[event.key];
      if (by) d3.select(picture).call(zoom.scaleBy, by);
      else if (move) d3.select(picture).call(zoom.translateBy, move, 0);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    put(1, 0);
    const kinds = [...new Set(events.map((e) => e.cat))];
    return h("section", null, h("h2", null, `One call, ${fusec.micro(end - start)} while it was recorded`,
      runs.call_us ? `, ${fusec.micro(runs.call_us)} without` : ""), picture,
    h("p.keys", null, kinds.map((kind) => h("span", null, h("i", {style: `background:${KINDS[kind] || "#bbbbbb"}`}), kind)),
      h("span.fine", null, "drag to move, Ctrl and wheel to zoom")));
  }

  function target(event) {
    const part = event.cat === "kernel" ? {node: event.name} : {};
    return fusec.link("", event.cat === "kernel" || event.cat === "library" || event.cat === "control"
      ? "graph" : "runs", event.cat === "library" || event.cat === "control" ? {node: event.name} : part).getAttribute("href");
  }

  // -- memory

  function memory(data) {
    const arrays = data.arrays.filter((a) => a.bytes !== null).sort((a, b) => b.bytes - a.bytes);
    if (!arrays.length || !data.steps.length) return null;
    const count = data.steps.length, total = Array.from({length: count}, (_, s) => arrays.reduce(
      (sum, a) => sum + (a.from <= s && s <= a.to ? a.bytes : 0), 0));
    const most = Math.max(...total, 1), peak = total.indexOf(most);
    const shown = arrays.slice(0, MOST_ARRAYS).sort((a, b) => a.from - b.from || b.bytes - a.bytes);
    const LEFT = 150, WIDTH = 820, HIGH = 90, ROW = 15, top = HIGH + 34;
    const x = (step) => LEFT + WIDTH * Math.max(0, Math.min(count, step)) / count;
    const picture = svg("svg", {viewBox: `0 0 ${LEFT + WIDTH + 12} ${top + shown.length * ROW + 10}`, class: "plot wide",
      role: "img", "aria-label": "memory by step"});
    const y = (bytes) => HIGH + 14 - HIGH * bytes / most;
    let path = `M${x(0)} ${y(0)}`;
    total.forEach((bytes, s) => { path += `L${x(s)} ${y(bytes)}L${x(s + 1)} ${y(bytes)}`; });
    picture.append(svg("path", {class: "area", d: `${path}L${x(count)} ${y(0)}Z`}),
      svg("text", {x: LEFT - 8, y: y(most) + 4, "text-anchor": "end"}, fusec.bytes(most)),
      svg("text", {x: LEFT - 8, y: y(0) + 4, "text-anchor": "end"}, "0"));
    const every = Math.max(1, Math.ceil(count / 12));
    data.steps.forEach((name, s) => { if (s % every === 0) picture.append(svg("text", {x: x(s) + 2, y: HIGH + 28}, name.slice(0, 11))); });
    shown.forEach((a, i) => {
      const what = a.origin === "operand" ? `argument ${a.position}` : a.origin === "target" ? `result ${a.position}` : a.origin;
      const tip = `${a.name}, ${what}: ${fusec.bytes(a.bytes)}, ${a.from < 0 ? "there before"
        : `from ${data.steps[a.from]}`} ${a.to >= count ? "to the end" : `to ${data.steps[a.to]}`}`;
      picture.append(svg("text", {x: LEFT - 8, y: top + i * ROW + 10, "text-anchor": "end"}, `${a.name} ${what}`),
        svg("rect", {x: x(a.from), y: top + i * ROW, width: Math.max(3, x(a.to + 1) - x(a.from)), height: ROW - 3, rx: 2,
          class: `memory ${a.origin}`, "data-tip": tip, tabindex: 0}));
    });
    return h("section", null, h("h2", null, `Memory: ${fusec.bytes(most)} at ${data.steps[peak]}`), picture,
      h("p.keys", null, ["operand", "target", "temp"].map((kind) => h("span", null, h(`i.memory.${kind}`),
        {operand: "arguments", target: "results", temp: "temporaries"}[kind]))),
      arrays.length > MOST_ARRAYS ? h("p.fine", null, `The largest ${MOST_ARRAYS} of ${fusec.number(arrays.length)}.`) : null);
  }

  function launches(rows) {
    if (!rows.length) return h("p.fine", null, "No call is recorded: fusec.config.history = True records every one.");
    return h("section", null, h("h2", null, `${fusec.plural(rows.length, "recorded call")}`), h("table.data", null,
      h("thead", null, h("tr", null, ["call", "elements", "cache", "built in", "ran", "GB/s", "% of limit"].map(
        (t, i) => h("th", {class: i ? "num" : null}, t)))),
      h("tbody", null, rows.slice(-MOST_ROWS).map((r) => h("tr", {"data-row": true}, h("td", null, `#${r.id}`),
        h("td.num", null, fusec.number(r.elements)), h("td.num", null, r.hit ? "hit" : "miss"),
        h("td.num", null, r.hit ? "" : `${r.build_ms.toFixed(1)} ms`), h("td.num", null, fusec.micro(r.run_us)),
        h("td.num", null, r.gbps ? r.gbps.toFixed(2) : ""),
        h("td.num", null, r.limit_percent === null ? "" : r.limit_percent.toFixed(0)))))));
  }
})();
