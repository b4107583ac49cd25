"use strict";
// The first screen: what there is, where to look, kernels, and the program's lines.
(() => {
  const {h} = fusec, MOST = 2000; // letters of a fact

  fusec.views.overview = async () => {
    const [kernels, report, sources, runs] = await Promise.all([
      fusec.part("kernels"), fusec.part("report"), fusec.part("sources"), fusec.part("runs")]);
    const {head, trace} = fusec.state, shown = head.traces[trace];
    const counts = [fusec.plural(shown.kernels, "kernel"),
      fusec.plural(shown.externs, "library call"),
      shown.control ? fusec.plural(shown.control, "branch or loop", "branches and loops") : null,
      fusec.plural(shown.nodes, "node")].filter(Boolean).join(", ");
    const facts = [["signature", shown.signature], ["stage", shown.stage],
      ["traced because", shown.reason], ["a call takes", runs ? fusec.micro(runs.call_us) : ""],
      ["made with", head.machine.versions],
      ["on", `${head.machine.cpu}, ${head.machine.cores} cores, ${head.machine.threads} threads`],
      ["at", head.machine.at]].filter(([, text]) => text);
    const element = h("div.columns", null,
      h("div", null,
        h("p.counts", null, counts),
        isMade(shown) ? null : h("p.fine", null, `Only ${shown.stage}: kernels come later.`),
        !isMade(shown) ? null : findings([...(head.findings || []), ...(report.findings || [])], shown, report.more),
        isMade(shown) ? fusec.kernelTable(kernels, sources, runs, head.machine) : null,
        fusec.controlTable(kernels, sources, runs, -1), fusec.externTable(kernels, sources, runs),
        broadcasts(report.broadcasts || [], sources), variables(report),
        h("dl.facts", null, facts.map(([key, text]) => [h("dt", null, key), h("dd", null, clipped(text))])),
        asText(report.text)),
      h("div", null, program(sources, kernels, runs)));
    return {element, shown: ({line}) => line && mark(element, line)};
  };

  // Whether the stage has kernels.
  const isMade = ({stage}) => stage !== "traced" && stage !== "optimized";

  // The report has the whole: a text may be an argument.
  const clipped = (text) => (text.length > MOST ? `${text.slice(0, MOST)} …` : text);

  // Operations whose result is larger than each of their operands, though no axis was inserted.
  function broadcasts(list, sources) {
    if (!list.length) return null;
    return h("section", null, h("h2", null, "Broadcasts that make larger arrays"), h("ul.broadcasts", null,
      list.map((one) => h("li", null, fusec.link(one.text, "graph", {graph: "traced", node: one.node}), " ",
        one.line < 0 ? null : fusec.link(fusec.place(sources, one.line), "overview",
          {line: sources.locs[one.line][1]})))));
  }

  function variables(report) {
    const rows = report.variables || [];
    if (!rows.length) return null;
    const heads = ["Variable", "type", "bytes", "norm now", "device", "use"];
    return h("section", null, h("h2", null, `${fusec.plural(rows.length, "Variable")}, ${
      fusec.bytes(report.variables_bytes)}`), h("table.data.variables", null,
    h("thead", null, h("tr", null, heads.map((text) => h("th", null, text)))),
    h("tbody", null, rows.map((row) => h("tr", {"data-row": true}, row.map((word, i) => h("td", null,
      i ? word.replace(/^norm /, "") : h("code", null, word))))))));
  }

  // Put into the page when it is opened: it may be long.
  function asText(text) {
    const box = h("pre");
    return h("details", {toggle: () => { if (!box.textContent) box.textContent = text; }},
      h("summary", null, "the report of fusec.explain, as text"), box);
  }

  function findings(list, shown, more) {
    if (!list.length) {
      return h("p.fine", null, shown.kernels === 1 && !shown.control
        ? "One kernel does it all: nothing was left apart." : "Nothing stands out.");
    }
    return h("section", null, h("h2", null, "Where to look"),
      h("ol.findings", null, list.map((one) => h("li", null,
        fusec.link(one.text, one.view, one.parts),
        one.us ? h("span.fine", null, ` takes ${fusec.micro(one.us)}`) : null))),
      more ? h("p.fine", null, `and ${more} more: the report has all.`) : null);
  }

  // The program's lines, each with the kernels that compute it, or the branch or loop that it begins.
  function program(sources, kernels, runs) {
    const share = timeOf(runs);
    const users = new Map();
    const use = (number, chip) => {
      if (number < 0) return;
      const [file, line] = sources.locs[number], key = `${file}:${line}`;
      if (!users.has(key)) users.set(key, new Map());
      users.get(key).set(chip.name, chip);
    };
    kernels.kernels.forEach(({name, lines}, kernel) => lines.forEach(
      (number) => use(number, {name, parts: {kernel}})));
    kernels.control.forEach(({name, line}, control) => use(line, {name, parts: {control}}));
    return sources.files.map((file, f) => {
      const [from, lines] = around(file, f, sources);
      return fusec.pane(fusec.short(file.name), lines, {first: from, decorate: (i) => {
        const found = users.get(`${f}:${from + i}`);
        return found && h("span.chips", null, [...found.values()].map(({name, parts}) => fusec.link(
          name, "kernels", {...parts, line: from + i}, {class: "chip", "data-tip": share(name)})));
      }, link: (i) => users.has(`${f}:${from + i}`)}).element;
    });
  }

  function timeOf(runs) {
    const steps = new Map((runs && runs.steps) || []);
    return (name) => (steps.has(name) ? `${name}: ${fusec.micro(steps.get(name))}` : name);
  }

  // Of a long file the lines around those that are used.
  function around(file, number, sources) {
    const used = sources.locs.filter(([f]) => f === number).map(([, line]) => line);
    const from = Math.max(file.first, Math.min(...used) - 6);
    const to = Math.max(...used) + 6;
    return [from, file.lines.slice(from - file.first, to - file.first + 1)];
  }

  function mark(element, line) {
    const row = [...element.querySelectorAll("li")].find(
      (li) => li.querySelector(".no") && li.querySelector(".no").textContent === String(line));
    if (row) { row.classList.add("chosen"); row.scrollIntoView({block: "center"}); }
  }
})();
