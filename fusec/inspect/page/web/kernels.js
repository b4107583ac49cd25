"use strict";
// Kernels: figures, and the program's lines, nodes, loops and code, linked with each other.
(() => {
  const {h} = fusec;

  // Figures of a kernel: its intensity, and with a measured time its rates and share of the limit.
  fusec.figures = (kernel, runs, machine) => {
    const steps = new Map((runs && runs.steps) || []);
    const us = steps.get(kernel.name);
    const bytes = kernel.loaded === null || kernel.stored === null ? null
      : kernel.loaded + kernel.stored;
    const name = kernel.device ? kernel.device.replace(/^.*device:/, "") : "CPU:0";
    const rates = machine.rates.find((r) => r.device === name);
    const least = !rates || bytes === null || kernel.work === null ? null
      : Math.max(bytes / rates.bytes_per_ns, kernel.work / rates.flops_per_ns) / 1e3;
    return {us, bytes, least, rates, device: name,
      intensity: bytes ? kernel.work / bytes : null,
      gflops: us ? kernel.work / us / 1e3 : null, gbps: us && bytes ? bytes / us / 1e3 : null,
      percent: us && least !== null ? 100 * least / us : null};
  };

  fusec.kernelTable = (part, sources, runs, machine, chosen = -1) => {
    const all = part.kernels.map((kernel) => fusec.figures(kernel, runs, machine));
    const timed = all.some((f) => f.us !== undefined && f.us !== null);
    const limits = all.some((f) => f.percent !== null);
    const heads = [["kernel"], ["lines"], ["ops", "operations for each element of its loops"],
      ["in"], ["out"], ["op/byte", "operations for each byte that is read or written"],
      ...(timed ? [["time", "the median of single steps"]] : []),
      ...(limits ? [["% of limit", "the least time that the device needs for these bytes and operations, "
        + "at its measured rates, of the time measured; above 100 where arrays lie in a cache"]] : [])];
    const rows = part.kernels.map((kernel, k) => {
      const f = all[k];
      return h("tr", {"data-row": true, class: k === chosen ? "chosen" : null},
        h("td", null, fusec.link(kernel.name, "kernels", {kernel: k})),
        h("td.lines-of", null, linesText(kernel.lines, sources)),
        h("td.num", null, String(kernel.ops)), h("td.num", null, fusec.bytes(kernel.loaded)),
        h("td.num", null, fusec.bytes(kernel.stored)),
        h("td.num", null, f.intensity === null ? "" : f.intensity.toPrecision(3)),
        timed ? h("td.num", null, fusec.micro(f.us)) : null,
        limits ? h("td.num", null, f.percent === null ? "" : f.percent.toFixed(0)) : null);
    });
    if (!rows.length) return h("p.fine", null, "No kernels outside of branches and loops.");
    return h("table.data", null, h("thead", null, h("tr", null, heads.map(([text, tip], i) =>
      h("th", {class: i > 1 ? "num" : null, "data-tip": tip, tabindex: tip ? 0 : null}, text)))),
    h("tbody", null, rows));
  };

  function linesText(numbers, sources) {
    const found = new Map();
    for (const n of numbers) {
      if (n < 0) continue;
      const [file, line] = sources.locs[n], name = fusec.short(sources.files[file].name);
      if (!found.has(name)) found.set(name, new Set());
      found.get(name).add(line);
    }
    return [...found].map(([name, lines]) => `${name}:${ranges([...lines].sort((a, b) => a - b))}`)
      .join("; ");
  }

  function ranges(numbers) {
    const runs = [];
    for (const n of numbers) {
      const last = runs.at(-1);
      if (last && last[1] === n - 1) last[1] = n; else runs.push([n, n]);
    }
    return runs.map(([a, b]) => (a === b ? a : `${a}-${b}`)).join(", ");
  }

  fusec.views.kernels = async (parts) => {
    const [part, sources, runs] = await Promise.all([
      fusec.part("kernels"), fusec.part("sources"), fusec.part("runs")]);
    const {machine} = fusec.state.head;
    const control = parts.control !== undefined ? Number(parts.control)
      : part.kernels.length ? -1 : 0;
    const k = Math.min(Number(parts.kernel || 0), part.kernels.length - 1);
    const chosen = control >= 0 ? part.control[control] : part.kernels[k];
    const step = (by) => () => fusec.go("kernels", {
      kernel: Math.max(0, Math.min(part.kernels.length - 1, k + by))});
    const left = h("div.kernel-list", null,
      fusec.kernelTable(part, sources, runs, machine, control >= 0 ? -1 : k),
      fusec.controlTable(part, sources, runs, control), fusec.externTable(part, sources, runs),
      fusec.roofline(part, runs, machine));
    const right = chosen ? await texts(chosen, part, sources, parts)
      : h("p.fine", null, "Nothing to show: no kernel, branch or loop.");
    const search = fusec.searchField(() => right, "search these texts");
    return {element: h("div.kernels-view", null, left, h("div.texts", null,
      h("div.bar", null, h("b", null, chosen ? chosen.name : ""), chosen && chosen.device
        ? h("span.fine", null, chosen.device) : null,
      chosen && chosen.mode ? h("span.fine", null, `loops: ${chosen.mode}`) : null,
      chosen && control < 0 ? fusec.link("in the graph", "graph", {node: chosen.name}) : null,
      search), right)), keys: {j: step(1), k: step(-1)},
    shown: () => right.dispatchEvent(new Event("shown"))};
  };

  fusec.controlTable = (part, sources, runs, chosen) => others("Branches and loops",
    part.control, sources, runs, (c, i) => fusec.link(c.name, "kernels", {control: i}), chosen);

  fusec.externTable = (part, sources, runs) => others("Library calls", part.externs, sources, runs,
    (e) => fusec.link(e.name, "graph", {node: e.node}), -1);

  // Steps that are no kernels: where they are, why, and with measured calls the time of each.
  function others(title, list, sources, runs, link, chosen) {
    if (!list.length) return null;
    const steps = new Map((runs && runs.steps) || []);
    const timed = list.some(({node}) => steps.has(node));
    return h("section", null, h("h2", null, title), h("table.data", null, h("tbody", null,
      list.map((one, i) => h("tr", {class: i === chosen ? "chosen" : null}, h("td", null, link(one, i)),
        h("td", null, fusec.place(sources, one.line)), h("td", null, one.reason),
        timed ? h("td.num", null, fusec.micro(steps.get(one.node))) : null)))));
  }

  // -- linked texts

  async function texts(chosen, part, sources, parts) {
    const code = await fusec.part(`code${chosen.text}`);
    const {links} = code, titles = code.parts.map(([title]) => title);
    const model = new Model(links, sources);
    const box = h("div.panes");
    if (links.nodes.length) {
      const shown = program(model, sources);
      shown.forEach((pane) => box.append(pane.element));
      box.append(nodes(model, links, sources).element);
    }
    if (!titles.length) return h("p.fine", null, "It has no text of its own: Python runs its "
      + "sub-graphs, which the graph has, one step after another.");
    const main = h("div.code"), tabs = h("div.code-tabs", {role: "tablist"});
    const open = (title) => {
      for (const tab of tabs.children) tab.setAttribute("aria-selected", String(tab.textContent === title));
      const text = code.parts.find(([name]) => name === title)[1];
      const pane = fusec.pane(title, text.split("\n"));
      model.put("code", pane, pane.rows.map((_, i) => model.ofCode(title, i)));
      const reason = (links.unlinked || {})[title];
      main.replaceChildren(...(reason ? [h("p.fine", null, reason)] : []), pane.element);
      model.refresh();
    };
    // The first text is that of the loops, or of a branch's or loop's statements.
    const own = links.loops.length || titles[0] === "loops" ? titles[0] : null;
    const rest = titles.filter((title) => title !== own);
    if (own) {
      const loops = fusec.pane(own, code.parts[0][1].split("\n"));
      model.put("loops", loops, loops.rows.map((_, i) => model.ofLoop(i)));
      box.append(loops.element);
    }
    rest.forEach((title) => tabs.append(h("button", {role: "tab", type: "button",
      click: () => open(title)}, title)));
    box.append(h("div.code-box", null, tabs, main));
    const first = rest.find((t) => t === parts.code) || rest.find((t) => /LLVM$|CUDA/.test(t)) || rest[0];
    if (first) open(first);
    box.addEventListener("shown", () => {
      if (parts.node) model.pick(model.ofNode(links.nodes.findIndex(([n]) => n === parts.node)));
      else if (parts.line) model.pick(model.ofLine(Number(parts.line)));
    });
    return box;
  }

  function program(model, sources) {
    const files = new Map();
    for (const [, , loc] of model.links.nodes) {
      if (loc < 0) continue;
      const [file, line] = sources.locs[loc];
      files.set(file, [...(files.get(file) || []), line]);
    }
    return [...files].map(([file, used]) => {
      const {name, first, lines} = sources.files[file];
      const from = Math.max(first, Math.min(...used) - 3);
      const pane = fusec.pane(fusec.short(name),
        lines.slice(from - first, Math.max(...used) + 3 - first + 1), {first: from});
      model.put(`line${file}`, pane, pane.rows.map((_, i) => model.ofLine(from + i, file)));
      return pane;
    });
  }

  function nodes(model, links, sources) {
    const pane = fusec.pane("nodes", links.nodes.map(([name, op, loc]) =>
      `${name}${name.replace(/_\d+$/, "") === op ? "" : ` = ${op}`}   ${fusec.place(sources, loc)}`),
    {numbers: false});
    model.put("nodes", pane, pane.rows.map((_, i) => model.ofNode(i)));
    return pane;
  }

  // What each row is of: sets of nodes and of lines of the loops.
  class Model {
    constructor(links, sources) {
      this.links = links;
      this.sources = sources;
      this.panes = new Map();
      this.picked = null;
      this.hasCode = new Set(Object.values(links.code).flat(2));
      this.lines = links.nodes.map(([, , loc]) => (loc < 0 ? null
        : `${sources.locs[loc][0]}:${sources.locs[loc][1]}`));
    }

    ofNodes(numbers) {
      const nodes = new Set(numbers), loops = new Set();
      this.links.loops.forEach((of, i) => { if (of.some((n) => nodes.has(n))) loops.add(i); });
      return {nodes, loops};
    }

    ofNode(number) { return number < 0 ? null : this.ofNodes([number]); }

    ofLine(line, file) {
      const found = this.links.nodes.map((_, i) => i).filter((i) => this.lines[i] !== null
        && (file === undefined ? this.lines[i].endsWith(`:${line}`) : this.lines[i] === `${file}:${line}`));
      return found.length ? this.ofNodes(found) : null;
    }

    ofLoop(row) {
      const of = this.links.loops[row] || [];
      return of.length || this.hasCode.has(row) ? {nodes: new Set(of), loops: new Set([row])} : null;
    }

    ofCode(title, row) {
      const loops = (this.links.code[title] || [])[row] || [];
      return loops.length ? {nodes: new Set(loops.flatMap((l) => this.links.loops[l] || [])), loops: new Set(loops)} : null;
    }

    put(name, pane, targets) {
      this.panes.set(name, {pane, targets});
      targets.forEach((target, i) => {
        if (!target) return;
        const row = pane.rows[i];
        row.classList.add("linked");
        row.addEventListener("mouseenter", () => this.light(target, "over", name));
        row.addEventListener("mouseleave", () => this.light(null, "over"));
        row.addEventListener("click", () => this.pick(target, name));
      });
      let at = -1;
      pane.list.addEventListener("keydown", (event) => {
        const by = {ArrowDown: 1, ArrowUp: -1}[event.key];
        if (!by) return;
        event.preventDefault();
        do at += by; while (targets[at] === null);
        at = Math.max(0, Math.min(targets.length - 1, at));
        if (targets[at]) { this.pick(targets[at], name); pane.rows[at].scrollIntoView({block: "nearest"}); }
      });
    }

    pick(target, from) {
      this.picked = target;
      this.light(target, "chosen", from, true);
    }

    refresh() { this.light(this.picked, "chosen", null, true); }

    light(target, style, from, scrolls) {
      for (const [name, {pane, targets}] of this.panes) {
        let first = null;
        pane.rows.forEach((row, i) => {
          const is = target !== null && targets[i] !== null && this.meets(name, target, targets[i]);
          row.classList.toggle(style, is);
          if (is && !first) first = row;
        });
        if (scrolls && first && name !== from) into(pane.list, first);
      }
    }

    // Loops and code are linked by the lines of loops; the others by nodes.
    meets(name, target, own) {
      const [a, b] = name === "loops" || name === "code" ? [target.loops, own.loops]
        : [target.nodes, own.nodes];
      for (const each of b) if (a.has(each)) return true;
      return false;
    }
  }

  function into(list, row) {
    const box = list.getBoundingClientRect(), at = row.getBoundingClientRect();
    if (at.top < box.top || at.bottom > box.bottom) list.scrollTop += at.top - box.top - box.height / 3;
  }
})();
