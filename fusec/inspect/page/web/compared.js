"use strict";
// Two pages compared: what differs, with links into both.
(() => {
  const {h} = fusec;

  fusec.views.compared = async () => {
    const data = await fusec.section("comparison");
    const parts = await Promise.all([0, 1].map((side) => fusec.section(`kernels/${side}`)));
    const root = h("div.compared-view");
    root.append(h("div.bar", null, fusec.searchField(() => root, "search the comparison")),
      facts(data), kernels(data, parts), others(data), why(data), nodes(data), stages(data));
    return {element: root};
  };

  const link = (text, view, side, more) => h("a", {href: `#${view}?${new URLSearchParams({trace: side, ...more})}`}, text);

  function facts(data) {
    return table(["", ...data.names, ""], data.facts.map(([title, a, b]) => {
      const show = (v) => (typeof v === "number" && title === "a call" ? fusec.micro(v) : v ?? "");
      return [title, show(a), show(b), title === "a call" ? ratio(a, b) : a === b ? "" : "differs"];
    }));
  }

  function kernels(data, parts) {
    const name = (side, number) => (number === null ? ""
      : link(parts[side].kernels[number].name, "kernels", side, {kernel: number}));
    const timed = data.kernels.some(([,,, a, b]) => a !== null || b !== null);
    return h("section", null, h("h2", null, "Kernels"), data.kernels.length ? table(
      [...data.names, "how they differ", ...(timed ? ["before", "after", ""] : [])],
      data.kernels.map(([a, b, how, us, now]) => [name(0, a), name(1, b), how,
        ...(timed ? [fusec.micro(us), fusec.micro(now), ratio(us, now)] : [])])) : h("p.fine", null, "None on either side."));
  }

  function others(data) {
    if (!data.others.length) return "";
    const name = (side, step) => (step === null ? "" : link(step[1], "graph", side, {node: step[0]}));
    const timed = data.others.some(([,, a, b]) => a !== null || b !== null);
    return h("section", null, h("h2", null, "Library calls, branches and loops"), table(
      [...data.names, ...(timed ? ["before", "after", ""] : [])],
      data.others.map(([a, b, us, now]) => [name(0, a), name(1, b),
        ...(timed ? [fusec.micro(us), fusec.micro(now), ratio(us, now)] : [])])));
  }

  // Times within a tenth of each other are taken for the same: that is what single runs vary by.
  function ratio(a, b) {
    if (!a || !b || Math.abs(b - a) < 0.1 * a) return "";
    return h("b", null, b < a ? `${(a / b).toFixed(2)} times faster` : `${(b / a).toFixed(2)} times slower`);
  }

  function why(data) {
    const list = (texts, side) => h("ul", null, texts.map((text) => h("li", {"data-row": true},
      link(text, "graph", side, {graph: "optimized"}))));
    if (!data.boundaries[0].length && !data.boundaries[1].length) return "";
    return h("section", null, h("h2", null, "Not fused"), data.boundaries.map((texts, side) => (texts.length
      ? [h("h3", null, `only ${side ? "after" : "before"}`), list(texts, side)] : null)));
  }

  function nodes(data) {
    const part = (title, rows, draw) => (rows.length ? h("details", {open: rows.length <= 20}, h("summary", null,
      `${title}: ${rows.length}`), h("ul", null, rows.map((row) => h("li", {"data-row": true}, draw(row))))) : null);
    return h("section", null, h("h2", null, `Nodes: ${fusec.plural(data.same, "is the same", "are the same")}`),
      part("changed", data.changed, ([a, b, how]) => [link(a, "graph", 0, {node: a}), " → ", link(b, "graph", 1, {node: b}), `: ${how}`]),
      part("only before", data.gone, ([name, type]) => [link(name, "graph", 0, {node: name}), ` ${type}`]),
      part("only after", data.new, ([name, type]) => [link(name, "graph", 1, {node: name}), ` ${type}`]),
      part("in a kernel on one side alone", data.moved, ([name, a, b]) => [link(name, "graph", 1, {node: name}),
        `: ${a || "no kernel"} → ${b || "no kernel"}`]));
  }

  function stages(data) {
    if (!data.stages.length) return "";
    const ms = (value) => (value === null || value === undefined ? "" : `${value.toFixed(1)} ms`);
    return h("section", null, h("h2", null, "Compile time"), table(["", ...data.names, ""],
      data.stages.map(([stage, a, b]) => [stage, ms(a), ms(b), ratio(a, b)])));
  }

  function table(heads, rows) {
    return h("table.data", null, h("thead", null, h("tr", null, heads.map((t) => h("th", null, t)))),
      h("tbody", null, rows.map((row) => h("tr", {"data-row": true}, row.map((cell) => h("td", null, cell))))));
  }
})();
