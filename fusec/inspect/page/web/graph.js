"use strict";
// The graph as a tree of boxes: kernels, loops, branches and scopes hold others, and fold.
(() => {
  const {h} = fusec;
  const OPEN_BELOW = 160; // boxes in all up to which everything is unfolded at first
  const folds = new Map(); // what was folded and unfolded, by the path of a box
  const PAD = 12, HEAD = 24, LETTER = 7.3;

  fusec.views.graph = async (parts) => {
    const [data, sources, kernels, runs] = await Promise.all([fusec.part("graph"),
      fusec.part("sources"), fusec.part("kernels"), fusec.part("runs")]);
    const choices = choicesOf(data);
    const chosen = choices.find(([name]) => name === parts.graph) || choices[0];
    const model = new Model(data, chosen[1], sources, kernels, runs);
    if (parts.node) model.reveal(parts.node);
    const canvas = h("canvas", {id: "canvas", tabindex: 0, role: "application", "aria-label":
      "the graph; arrows go to operands and readers, Enter folds"});
    const details = h("aside.details", {"aria-live": "polite"});
    const drawing = fusec.drawing(canvas, model, (item) => tell(details, item, model));
    const redo = (keep) => { model.arrange(); drawing.update(keep); };
    model.redo = redo;
    const bar = h("div.bar", null,
      h("select", {"aria-label": "graph", change: (e) => fusec.go("graph", {graph: e.target.value})},
        choices.map(([name, , title]) => h("option", {value: name, selected: name === chosen[0]}, title))),
      button("fold all", () => { model.foldAll(true); redo(); }),
      button("unfold all", () => { model.foldAll(false); redo(); }),
      button("fit", () => drawing.fit()),
      h("label", null, h("input", {type: "checkbox", checked: model.constants, change: (e) => {
        model.constants = e.target.checked; model.rebuild(); redo(); }}), " constants"),
      fusec.searchField({find: (text) => find(text, model, drawing)}, "search nodes"),
      legend(model));
    tell(details, null, model);
    return {element: h("div.graph-view", null, bar, h("div.stage", null, canvas, details)),
      keys: {"+": () => drawing.zoom(1.4), "=": () => drawing.zoom(1.4), "-": () => drawing.zoom(1 / 1.4),
        0: () => drawing.fit(), Escape: () => drawing.choose(null)},
      shown: () => { drawing.update(); if (parts.node) drawing.goTo(model.find(parts.node)); }};
  };

  const button = (text, click) => h("button", {type: "button", click}, text);

  function choicesOf(data) {
    const list = [];
    if (data.optimized !== undefined) list.push(["optimized", data.optimized, "after the passes"]);
    list.push(["traced", data.traced, "as traced"]);
    for (const [device, number] of Object.entries(data.partitions || {})) list.push([device, number, `part of ${device.replace(/^.*device:/, "")}`]);
    return list;
  }

  const KIND = {Input: "input", Const: "const", Fused: "kernel", Loop: "control", Cond: "control",
    Call: "control", Send: "transfer", Recv: "transfer", Copy: "transfer", Nodes: "folded"};
  const PURE = new Set(["Reshape", "Transpose", "Slice", "ExpandDims", "BroadcastTo"]);

  class Model {
    constructor(data, number, sources, kernels, runs) {
      Object.assign(this, {data, number, sources, kernels, runs, constants: false});
      this.steps = new Map((runs && runs.steps) || []);
      this.hasGradient = data.graphs.some((graph) => graph.nodes.some((node) => node.q));
      this.kernelOf = new Map(kernels.kernels.map((k, i) => [k.name, i]));
      this.boundaries = new Map();
      for (const [name, text] of data.boundaries || []) {
        this.boundaries.set(name, [...(this.boundaries.get(name) || []), text]);
      }
      this.devices = [];
      this.rebuild();
      this.arrange();
    }

    rebuild() {
      this.items = [];
      this.small = this.count(this.number) <= OPEN_BELOW;
      this.root = {path: String(this.number), open: true, children: [], edges: [], depth: 0};
      this.fill(this.root, this.number);
      this.kept = this.keptBytes();
    }

    count(number, depth = 0) {
      if (number < 0 || depth > 8) return 0;
      return this.data.graphs[number].nodes.reduce((sum, node) => sum + 1
        + (node.g || []).reduce((s, [, g]) => s + this.count(g, depth + 1), 0), 0);
    }

    // The boxes of a graph in a group, and the edges between them.
    fill(group, number) {
      const graph = this.data.graphs[number];
      const box = graph.nodes.map((node, i) => this.item(group, node, `${group.path}/${i}`, number, i));
      const owner = this.scopes(group, graph, box);
      const seen = new Map();
      graph.nodes.forEach((node, i) => {
        const to = owner[i];
        if (!to) return;
        node.i.forEach(([source, out], position) => {
          const from = owner[source];
          if (!from || from === to) return;
          const key = `${from.path}>${to.path}`;
          const kept = group === this.root && this.isKept(graph.nodes[source], out, node, position);
          if (seen.has(key)) { seen.get(key).kept ||= kept; return; }
          const edge = {from, to, kept, why: this.why(graph.nodes[source], node)};
          seen.set(key, edge);
          group.edges.push(edge);
          from.readers.push(to);
          to.operands.push(from);
        });
      });
    }

    item(group, node, path, number, index) {
      if (node.o === "Const" && !this.constants) return null;
      const item = {path, node, group, number, index, depth: group.depth + 1, children: [], edges: [],
        readers: [], operands: [], kind: KIND[node.o] || (this.isLibrary(node) ? "library" : "op"),
        title: node.o === "Fused" ? node.n : node.n, open: false};
      this.items.push(item);
      group.children.push(item);
      if (node.d && !this.devices.includes(node.d)) this.devices.push(node.d);
      item.gradient = node.o === "Fused" ? this.allGradient(node) : Boolean(node.q);
      const inner = (node.g || []).filter(([, g]) => g >= 0 && item.depth < 12);
      item.folds = inner.length > 0;
      if (item.folds && this.isOpen(path, item)) {
        item.open = true;
        if (inner.length === 1) this.fill(item, inner[0][1]);
        else for (const [name, g] of inner) {
          const part = {path: `${path}/${name}`, node: {n: name, o: "graph", t: "", i: [], l: -1}, group: item,
            depth: item.depth + 1, children: [], edges: [], readers: [], operands: [], kind: "part",
            title: name, open: true, folds: false};
          item.children.push(part);
          this.items.push(part);
          this.fill(part, g);
        }
      }
      return item;
    }

    allGradient(node) {
      const inner = (node.g || []).flatMap(([, g]) => (g < 0 ? [] : this.data.graphs[g].nodes))
        .filter((n) => n.o !== "Input" && n.o !== "Const");
      return inner.length > 0 && inner.every((n) => n.q);
    }

    isLibrary(node) { return this.kernels.externs.some((e) => e.node === node.n) && !PURE.has(node.o); }

    isOpen(path) { return folds.has(path) ? folds.get(path) : this.small; }

    // Nodes of one name scope are in one box, which folds; the owner of each node at this level.
    scopes(group, graph, box) {
      const owner = [...box], made = new Map();
      box.forEach((item, i) => {
        if (!item || !item.node.n.includes("/")) return;
        const name = item.node.n.slice(0, item.node.n.lastIndexOf("/"));
        if (!made.has(name)) {
          const path = `${group.path}/scope:${name}`;
          made.set(name, {path, node: {n: name, o: "scope", t: "", i: [], l: item.node.l}, group,
            depth: item.depth, children: [], edges: [], readers: [], operands: [], kind: "scope",
            title: name, folds: true, open: this.isOpen(path), members: 0});
        }
        const scope = made.get(name);
        scope.members++;
        owner[i] = scope;
        group.children.splice(group.children.indexOf(item), 1);
        if (scope.open) { scope.children.push(item); item.group = scope; item.depth++; }
        else this.items.splice(this.items.indexOf(item), 1);
      });
      for (const scope of made.values()) {
        group.children.push(scope);
        this.items.push(scope);
        if (scope.open) this.inside(scope, graph, box);
      }
      return owner;
    }

    inside(scope, graph, box) {
      graph.nodes.forEach((node, i) => {
        const to = box[i];
        if (!to || to.group !== scope) return;
        for (const [source] of node.i) {
          const from = box[source];
          if (from && from.group === scope) {
            scope.edges.push({from, to, kept: false, why: this.why(graph.nodes[source], node)});
            from.readers.push(to);
            to.operands.push(from);
          }
        }
      });
    }

    // Why a kernel is not one with what it reads.
    why(producer, consumer) {
      const reasons = this.boundaries.get(consumer.n) || [];
      if (!reasons.length) return null;
      const names = new Set([producer.n, ...(producer.g || []).flatMap(([, g]) => (
        g < 0 ? [] : this.data.graphs[g].nodes.map((n) => n.n)))]);
      const found = reasons.filter((text) => (text.match(/[\w./]+/g) || []).some((w) => names.has(w)));
      return found.length ? found : null;
    }

    // Whether a value of the program is read by what a derivative made, in memory of its own.
    isKept(producer, out, consumer, position) {
      if (!this.hasGradient || producer.o === "Input" || producer.o === "Const") return false;
      const made = producer.o === "Fused" ? this.inner(producer, (g) => g.nodes[g.outputs[out][0]]) : producer;
      if (made.q) return false;
      if (consumer.o !== "Fused") return Boolean(consumer.q);
      return this.inner(consumer, (g) => g.nodes.some((n) => n.q && n.o !== "Input"
        && n.i.some(([source]) => source === g.inputs[position])));
    }

    inner(node, asked) { return asked(this.data.graphs[node.g[0][1]]); }

    keptBytes() {
      const graph = this.data.graphs[this.number], kept = new Map();
      graph.nodes.forEach((node) => node.i.forEach(([source, out], position) => {
        const from = graph.nodes[source];
        if (!this.isKept(from, out, node, position)) return;
        const bytes = from.bs ? from.bs[out] : from.b;
        kept.set(`${source}:${out}`, {name: from.n, bytes: Number.isFinite(bytes) ? bytes : null});
      }));
      const values = [...kept.values()], names = new Map();
      for (const {name, bytes} of values) names.set(name, (names.get(name) || 0) + (bytes || 0));
      return {count: values.length, bytes: values.reduce((sum, {bytes}) => sum + (bytes || 0), 0),
        names: [...names], unknown: values.filter(({bytes}) => bytes === null).length};
    }

    arrange() { this.place(this.root); }

    // Sizes and places of the children of a group, the inner ones first; then its own size.
    place(group) {
      for (const child of group.children) {
        if (child.open && child.children.length) this.place(child);
        else this.size(child);
      }
      const number = new Map(group.children.map((c, i) => [c, i]));
      const edges = group.edges.filter((e) => number.has(e.from) && number.has(e.to))
        .map((e) => [number.get(e.from), number.get(e.to)]);
      const {w, h: high} = fusec.arranged(group.children, edges);
      for (const child of group.children) { child.x += PAD; child.y += PAD + (group.depth ? HEAD : 0); }
      group.w = Math.max(w + 2 * PAD, 60 + LETTER * (group.title || "").length);
      group.h = high + 2 * PAD + (group.depth ? HEAD : 0);
      const slack = (group.w - w - 2 * PAD) / 2;
      if (slack > 0) for (const child of group.children) child.x += slack;
    }

    size(item) {
      const longest = Math.max(item.title.length, this.under(item).length * 0.86);
      item.w = Math.min(300, Math.max(56, 22 + LETTER * longest));
      item.h = 40;
    }

    // The second line of a box.
    under(item) {
      const {node} = item;
      if (item.kind === "scope") return `scope, ${fusec.plural(item.members, "node")}`;
      if (node.o === "Fused") {
        const k = this.kernelOf.get(node.n), inner = this.data.graphs[node.g[0][1]];
        const us = this.steps.get(node.n);
        return `kernel, ${inner ? fusec.plural(inner.nodes.filter((n) => n.o !== "Input").length, "node") : ""}`
          + (us ? `, ${fusec.micro(us)}` : k === undefined ? "" : "");
      }
      if (node.o === "Nodes") return node.t;
      const op = node.n.replace(/^.*\//, "").replace(/_\d+$/, "") === node.o ? "" : `${node.o} `;
      return `${op}${node.t}`;
    }

    foldAll(folded) {
      const walk = (path, number, depth) => {
        if (number < 0 || depth > 12) return;
        this.data.graphs[number].nodes.forEach((node, i) => {
          if (!node.g) return;
          folds.set(`${path}/${i}`, !folded);
          node.g.forEach(([name, g]) => walk(node.g.length === 1 ? `${path}/${i}` : `${path}/${i}/${name}`, g, depth + 1));
        });
      };
      walk(String(this.number), this.number, 0);
      for (const item of this.items) if (item.kind === "scope") folds.set(item.path, !folded);
      this.rebuild();
    }

    toggle(item) {
      if (!item.folds) return;
      folds.set(item.path, !item.open);
      this.rebuild();
      this.redo(item.path);
    }

    // Unfolds what a node is in.
    reveal(name) {
      const look = (path, number, depth) => {
        if (number < 0 || depth > 12) return false;
        return this.data.graphs[number].nodes.some((node, i) => {
          if (node.n === name) return true;
          return (node.g || []).some(([part, g]) => {
            const found = look(node.g.length === 1 ? `${path}/${i}` : `${path}/${i}/${part}`, g, depth + 1);
            if (found) folds.set(`${path}/${i}`, true);
            return found;
          });
        });
      };
      look(String(this.number), this.number, 0);
      this.rebuild();
      this.arrange();
    }

    find(name) { return this.items.find((item) => item.node.n === name) || null; }
  }

  function find(text, model, drawing) {
    const wanted = text.toLowerCase();
    const hits = !text ? [] : model.items.filter((item) =>
      `${item.node.n} ${item.node.o} ${item.node.t} ${item.node.a || ""}`.toLowerCase().includes(wanted));
    drawing.hits(new Set(hits));
    let at = -1;
    return {count: hits.length, next: () => { if (hits.length) drawing.goTo(hits[at = (at + 1) % hits.length]); }};
  }

  function legend(model) {
    const kinds = new Set(model.items.map((i) => i.kind));
    const words = [["kernel", "kernel"], ["library", "library call"], ["control", "branch or loop"],
      ["transfer", "transfer"]].filter(([kind]) => kinds.has(kind));
    return h("span.legend", null, words.map(([kind, text]) => h(`span.key.${kind}`, null, text)),
      model.devices.map((d, i) => h("span.key", {style: `--key:var(--device${i % 6})`},
        d.replace(/^.*device:/, ""))),
      model.items.some((i) => i.gradient) ? h("span.key.gradient", null, "made by a gradient") : null,
      (model.data.boundaries || []).length ? h("span.key.why", null, "not fused") : null);
  }

  // -- what is selected

  function tell(details, item, model) {
    if (!item) { details.replaceChildren(h("div", null, summary(model))); return; }
    const {node} = item, {sources} = model;
    const loc = node.l >= 0 ? sources.locs[node.l] : null;
    const kernel = model.kernelOf.get(node.n);
    const owner = kernelOver(item, model);
    const facts = [["op", node.o], ["type", node.t], ["bytes", fusec.bytes(node.b)],
      ["device", node.d], ["attributes", node.a]].filter(([, value]) => value);
    const why = (model.boundaries.get(node.n) || []);
    const control = model.kernels.control.findIndex((c) => c.node === node.n);
    details.replaceChildren(h("div", null, h("h2", null, node.n),
      h("dl.facts", null, facts.map(([k, v]) => [h("dt", null, k), h("dd", null, v)]),
        loc ? [h("dt", null, "line"), h("dd", null, fusec.link(fusec.place(sources, node.l), "overview", {line: loc[1]}),
          h("code.source", null, (sources.files[loc[0]].lines[loc[1] - sources.files[loc[0]].first] || "").trim()))] : null),
      kernel !== undefined ? h("p", null, fusec.link("its loops and code", "kernels", {kernel})) : null,
      control >= 0 ? h("p", null, fusec.link("how it runs", "kernels", {control})) : null,
      owner ? h("p", null, "in the kernel ", fusec.link(owner.name, "kernels", {kernel: owner.k, node: node.n})) : null,
      item.gradient ? h("p", null, "A derivative made it.") : null,
      item.folds ? button(item.open ? "fold" : "unfold", () => model.toggle(item)) : null,
      why.length ? [h("h3", null, "not fused"), h("ul", null, why.map((t) => h("li", null, t)))] : null,
      neighbours("operands", item.operands), neighbours("readers", item.readers)));
  }

  function kernelOver(item, model) {
    for (let group = item.group; group && group.node; group = group.group) {
      const k = model.kernelOf.get(group.node.n);
      if (k !== undefined) return {k, name: group.node.n};
    }
    return null;
  }

  function neighbours(title, items) {
    if (!items.length) return null;
    return [h("h3", null, title), h("ul", null, [...new Set(items)].slice(0, 40).map((i) => h("li", null,
      fusec.link(i.node.n, "graph", {...fusec.state.parts, node: i.node.n}))))];
  }

  function summary(model) {
    const graph = model.data.graphs[model.number], made = [h("p.fine", null,
      `${fusec.plural(graph.count, "node")}. Click a box, or use the arrows; Enter folds.`)];
    if (graph.folded) {
      made.push(h("p", null, `Too many to draw each: a box is ${fusec.number(graph.folded)} nodes that `
        + "follow each other. FUSEC_DUMP writes them all."));
    }
    if (model.hasGradient) {
      made.push(h("h3", null, "gradient"), h("p", null, model.kept.count
        ? `${fusec.plural(model.kept.count, "value")} of the program ${model.kept.count === 1 ? "is" : "are"} `
          + `kept for it, ${fusec.bytes(model.kept.bytes)}` + (model.kept.unknown
          ? ` and ${fusec.plural(model.kept.unknown, "value")} whose size the run knows` : "") : "It reads no value that the program leaves in memory."),
      h("ul", null, model.kept.names.slice(0, 40).map(([name, bytes]) => h("li", null,
        fusec.link(name, "graph", {...fusec.state.parts, node: name}), ` ${fusec.bytes(bytes)}`))));
    }
    const why = model.data.boundaries || [];
    if (why.length) {
      made.push(h("h3", null, "not fused"), h("ul", null, why.slice(0, 60).map(([name, text]) =>
        h("li", null, fusec.link(text, "graph", {graph: "optimized", node: name})))));
    }
    return made;
  }
})();
