"use strict";
// The boxes on a canvas: drawn where they are seen, with names where these can be read.
(() => {
  const FONT = 12, READABLE = 0.12; // the size of names; the scale at which boxes can be told apart

  fusec.drawing = (canvas, model, told) => {
    const context = canvas.getContext("2d");
    let view = d3.zoomIdentity, chosen = null, hits = new Set(), pending = false, over = null;
    const zoom = d3.zoom().scaleExtent([0.005, 6]).on("zoom", (event) => { view = event.transform; draw(); });
    const selection = d3.select(canvas).call(zoom).on("dblclick.zoom", null);
    const colours = () => {
      const style = getComputedStyle(document.documentElement), known = {};
      return (name) => known[name] || (known[name] = style.getPropertyValue(`--${name}`).trim());
    };
    let colour = colours();

    function draw() {
      if (pending) return;
      pending = true;
      requestAnimationFrame(() => { pending = false; paint(); });
    }

    function paint() {
      const ratio = devicePixelRatio || 1, {clientWidth: w, clientHeight: high} = canvas;
      if (canvas.width !== w * ratio || canvas.height !== high * ratio) {
        canvas.width = w * ratio;
        canvas.height = high * ratio;
      }
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.fillStyle = colour("ground");
      context.fillRect(0, 0, w, high);
      context.translate(view.x, view.y);
      context.scale(view.k, view.k);
      const seen = {left: -view.x / view.k, top: -view.y / view.k, right: (w - view.x) / view.k,
        bottom: (high - view.y) / view.k};
      group(model.root, 0, 0, seen);
      canvas.dataset.drawn = String(Number(canvas.dataset.drawn || 0) + 1);
    }

    // Ordinary edges run below the boxes, so that names stay readable; those that say something above.
    function group(parent, x, y, seen) {
      const marked = edges(parent, x, y, seen);
      for (const child of parent.children) {
        const left = x + child.x - child.w / 2, top = y + child.y - child.h / 2;
        child.left = left;
        child.top = top;
        if (left > seen.right || left + child.w < seen.left || top > seen.bottom || top + child.h < seen.top) continue;
        box(child, left, top);
        if (child.open && child.children.length && child.w * view.k > 14) group(child, left, top, seen);
      }
      for (const [edge, path, mx, my] of marked) mark(edge, path, mx, my);
    }

    function edges(parent, x, y, seen) {
      const ordinary = new Path2D(), marked = [], wide = parent.edges.length > 3000;
      for (const edge of parent.edges) {
        const a = edge.from, b = edge.to;
        const x1 = x + a.x, y1 = y + a.y + a.h / 2, x2 = x + b.x, y2 = y + b.y - b.h / 2;
        if (Math.max(x1, x2) < seen.left || Math.min(x1, x2) > seen.right
          || Math.max(y1, y2) < seen.top || Math.min(y1, y2) > seen.bottom) continue;
        const special = edge.why || edge.kept || a === chosen || b === chosen;
        const path = special ? new Path2D() : ordinary;
        path.moveTo(x1, y1);
        if (wide) path.lineTo(x2, y2);
        else { const bend = Math.max(12, Math.abs(y2 - y1) / 2); path.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2); }
        if (special) marked.push([edge, path, (x1 + x2) / 2, (y1 + y2) / 2]);
        else if (view.k > 0.35) { path.moveTo(x2 - 3, y2 - 6); path.lineTo(x2, y2); path.lineTo(x2 + 3, y2 - 6); }
      }
      context.strokeStyle = colour("edge");
      context.lineWidth = Math.max(1, 0.6 / view.k);
      context.stroke(ordinary);
      return marked;
    }

    function mark(edge, path, mx, my) {
      const near = edge.from === chosen || edge.to === chosen;
      context.strokeStyle = edge.why ? colour("warm") : edge.kept ? colour("kept") : colour("text");
      context.lineWidth = (near || edge.why ? 2.4 : 2) / Math.min(1, Math.max(view.k, 0.4));
      context.setLineDash(edge.why ? [7, 4] : []);
      context.stroke(path);
      context.setLineDash([]);
      edge.at = edge.why ? [mx, my] : null;
      if (!edge.why || view.k < 0.15) return;
      const r = 8 / Math.min(1, Math.max(view.k, 0.35));
      context.fillStyle = colour("ground");
      context.strokeStyle = colour("warm");
      context.lineWidth = r / 4;
      context.beginPath();
      context.arc(mx, my, r, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
      context.fillStyle = colour("text");
      context.font = `bold ${r * 1.5}px sans-serif`;
      context.textAlign = "center";
      context.fillText("?", mx, my + r * 0.55);
    }

    function box(item, left, top) {
      const {kind, w, h} = item, d = item.node.d ? model.devices.indexOf(item.node.d) % 6 : -1;
      if (h * view.k < 4 && item !== chosen && !hits.has(item)) { // too small for an outline
        context.fillStyle = d >= 0 ? colour(`device${d}`) : colour(STROKE[kind] || "boxline");
        context.fillRect(left, top, w, h);
        return;
      }
      context.beginPath();
      context.roundRect(left, top, w, h, kind === "input" ? h / 2 : kind === "op" || kind === "const" ? 4 : 7);
      context.fillStyle = colour(item.open ? "inside" : FILL[kind] || "op");
      context.fill();
      context.strokeStyle = item === chosen ? colour("warm") : hits.has(item) ? colour("warm")
        : d >= 0 ? colour(`device${d}`) : colour(STROKE[kind] || "boxline");
      context.lineWidth = item === chosen ? 3.5 : d >= 0 || item.gradient || hits.has(item) ? 2.6 : 1.2;
      context.setLineDash(item.gradient ? [5, 3] : []);
      context.stroke();
      context.setLineDash([]);
      if (d >= 0) { context.fillStyle = colour(`device${d}`); context.fillRect(left + 5, top + 5, 7, 7); }
      if (view.k * FONT < 5.5 || w * view.k < 26) return;
      context.fillStyle = colour("text");
      context.font = `600 ${FONT}px ui-monospace, "DejaVu Sans Mono", monospace`;
      context.textAlign = item.open ? "left" : "center";
      const sign = item.folds ? (item.open ? "▾ " : "▸ ") : "";
      const x = item.open ? left + 16 : left + w / 2, first = clipped(sign + item.title, w - 14);
      context.fillText(first, x, top + 17);
      const second = model.under(item);
      context.fillStyle = colour("soft");
      context.font = `${FONT - 1.5}px ui-monospace, "DejaVu Sans Mono", monospace`;
      if (!item.open) context.fillText(clipped(second, w - 10, FONT - 1.5), x, top + 32);
      else if (w > 200) { context.textAlign = "right"; context.fillText(clipped(second, w - 40 - 7.4 * first.length, FONT - 1.5), left + w - 10, top + 17); }
    }

    const clipped = (text, width, size = FONT) => {
      const most = Math.floor(width / (size * 0.605));
      return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;
    };

    // -- where the pointer is

    function under(event) {
      const r = canvas.getBoundingClientRect();
      const [x, y] = view.invert([event.clientX - r.left, event.clientY - r.top]);
      for (const parent of [model.root, ...model.items.filter((i) => i.open)]) {
        for (const edge of parent.edges) {
          if (edge.at && Math.hypot(edge.at[0] - x, edge.at[1] - y) < 11 / Math.min(1, view.k)) return {edge};
        }
      }
      let found = null, list = model.root.children;
      while (list) {
        const next = list.find((c) => c.left <= x && x <= c.left + c.w && c.top <= y && y <= c.top + c.h);
        if (!next) break;
        found = next;
        list = next.open ? next.children : null;
      }
      return {item: found};
    }

    function tip({edge, item}) {
      if (edge) return edge.why.join("\n");
      if (!item) return "";
      const {node} = item, loc = fusec.place(model.sources, node.l);
      const why = model.boundaries.get(node.n) || [];
      return [`${node.n}: ${node.o} ${node.t}`, loc, node.b ? fusec.bytes(node.b) : "", node.d || "",
        item.gradient ? "made by a derivative" : "", ...why].filter(Boolean).join("\n");
    }

    selection.on("mousemove", (event) => {
      const now = under(event), text = tip(now);
      if (text) fusec.showTip(text, event.clientX, event.clientY); else fusec.hideTip();
      canvas.style.cursor = now.item || now.edge ? "pointer" : "grab";
      over = now;
    }).on("mouseleave", () => fusec.hideTip()).on("click", (event) => {
      const {item} = under(event);
      api.choose(item || null);
    }).on("dblclick", (event) => {
      const {item} = under(event);
      if (item) model.toggle(item);
    }).on("keydown", keys);

    function keys(event) {
      const way = {ArrowUp: "operands", ArrowDown: "readers"}[event.key];
      const side = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!way && !side && event.key !== "Enter") return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key === "Enter") { if (chosen) model.toggle(chosen); return; }
      let next = null;
      if (!chosen) [next] = [...model.root.children].sort((a, b) => a.y - b.y || a.x - b.x);
      else if (way) next = chosen[way][0] || (way === "readers" && chosen.open ? chosen.children[0] : null)
        || (way === "operands" && chosen.group.node ? chosen.group : null);
      else next = beside(chosen, side);
      if (next) api.goTo(next);
    }

    function beside(item, side) {
      return item.group.children.filter((c) => c !== item && Math.abs(c.y - item.y) < 30
        && Math.sign(c.x - item.x) === side).sort((a, b) => Math.abs(a.x - item.x) - Math.abs(b.x - item.x))[0];
    }

    // The first boxes, where all of them would be too small to read.
    function begin() {
      const [first] = [...model.root.children].sort((a, b) => a.y - b.y || b.readers.length - a.readers.length);
      selection.call(zoom.transform, d3.zoomIdentity.translate(
        canvas.clientWidth / 2 - 0.8 * first.x, 20).scale(0.8));
      paint();
    }

    const api = {
      update(path) {
        colour = colours();
        chosen = chosen && model.items.find((i) => i.path === chosen.path) || null;
        if (path) { chosen = model.items.find((i) => i.path === path) || chosen; told(chosen); paint(); if (chosen) api.goTo(chosen); }
        else if (0.96 * canvas.clientHeight / model.root.h < READABLE && !chosen) begin();
        else api.fit();
      },
      fit() {
        const {clientWidth: w, clientHeight: high} = canvas;
        const k = Math.min(1.25, 0.96 * w / model.root.w, 0.96 * high / model.root.h);
        const t = d3.zoomIdentity.translate((w - k * model.root.w) / 2, (high - k * model.root.h) / 2).scale(k);
        selection.call(zoom.transform, t);
        paint();
      },
      zoom(by) { selection.call(zoom.scaleBy, by); },
      choose(item) { chosen = item; told(item); draw(); },
      hits(set) { hits = set; draw(); },
      goTo(item) {
        if (!item) return;
        chosen = item;
        told(item);
        const {clientWidth: w, clientHeight: high} = canvas;
        const k = Math.max(0.75, Math.min(view.k, 1.3));
        let x = item.x, y = item.y;
        for (let g = item.group; g && g.node; g = g.group) { x += g.x - g.w / 2; y += g.y - g.h / 2; }
        const whole = Math.min(k, 0.9 * w / item.w, 0.9 * high / item.h);
        selection.call(zoom.transform, d3.zoomIdentity.translate(w / 2 - whole * x, high / 2 - whole * y).scale(whole));
        paint();
      },
      get chosen() { return chosen; },
    };
    new ResizeObserver(draw).observe(canvas);
    addEventListener("fusec-theme", () => { colour = colours(); draw(); });
    canvas.fusec = {api, model, where: (item) => view.apply([item.left + item.w / 2, item.top + item.h / 2]),
      whereEdge: (edge) => view.apply(edge.at)};
    return api;
  };

  const FILL = {kernel: "kernel", library: "library", control: "control", transfer: "transfer",
    input: "inputs", const: "inputs", op: "op", scope: "scope", folded: "kernel", part: "inside"};
  const STROKE = {kernel: "kernelline", library: "libraryline", control: "controlline", transfer: "transferline"};
})();
