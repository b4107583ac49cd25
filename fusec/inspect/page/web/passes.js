"use strict";
// Every pass with its time and rewrites, and any two stages side by side.
(() => {
  const {h} = fusec;
  const CONTEXT = 2; // unchanged lines around a change

  fusec.views.passes = async (parts) => {
    const [data, sources] = await Promise.all([fusec.part("passes"), fusec.part("sources")]);
    const graphs = fusec.linesOf(data), stages = stagesOf(data);
    const list = h("div.passes-list"), compared = h("div.compared");
    const chosen = Math.max(0, stages.findIndex((s) => s.id === parts.pass));
    const first = stages.findIndex((s) => s.changed);
    const current = parts.pass === undefined ? Math.max(0, first) : chosen;
    list.append(...rows(data, stages, current));
    compared.append(...comparison(data, graphs, sources, stages, current, parts));
    const step = (by) => () => {
      const shown = stages.map((s, i) => i).filter((i) => stages[i].changed || i === current);
      const at = shown[Math.max(0, Math.min(shown.length - 1, shown.indexOf(current) + by))];
      fusec.go("passes", {pass: stages[at].id});
    };
    return {element: h("div.split", null, list, compared), keys: {j: step(1), k: step(-1)},
      shown: () => { const row = list.querySelector("[aria-current]");
        if (row) row.scrollIntoView({block: "nearest"}); }};
  };

  // All passes, those of sub-graphs below the one that ran them.
  function stagesOf(data) {
    const stages = [];
    const add = (pass, id, depth, body) => {
      stages.push({...pass, id, depth, body, changed: pass.before !== pass.after});
      (pass.inner || []).forEach((inner, b) => inner.passes.forEach(
        (p, k) => add(p, `${id}.${b}.${k}`, depth + 1, inner.body)));
    };
    data.passes.forEach((pass, i) => add(pass, String(i), 0, ""));
    return stages.length ? stages : [{id: "0", name: "as traced", ms: 0, rewrites: 0, depth: 0,
      before: data.traced, after: data.traced, changed: false}];
  }

  function rows(data, stages, current) {
    const most = Math.max(...stages.map((s) => s.ms), 1e-9);
    const made = [], total = stages.filter((s) => !s.depth).reduce((sum, s) => sum + s.ms, 0);
    const active = stages.filter((s) => !s.depth && s.changed).length;
    made.push(h("p.counts", null, `${fusec.plural(stages.filter((s) => !s.depth).length, "pass",
      "passes")}, ${active} changed the graph, ${total.toFixed(2)} ms`));
    let idle = [], body = null;
    const flush = () => {
      if (!idle.length) return;
      const open = idle.some((i) => i === current);
      made.push(h("details.idle", {open}, h("summary", null, `${idle.length} idle`),
        idle.map((i) => row(stages[i], i === current, most))));
      idle = [];
    };
    stages.forEach((stage, i) => {
      if (stage.body !== body) {
        flush();
        body = stage.body;
        if (body) made.push(h("div.body-name", {style: `--depth:${stage.depth}`}, `in ${body}`));
      }
      if (!stage.changed && !(stage.inner || []).length) { idle.push(i); return; }
      flush();
      made.push(row(stage, i === current, most));
    });
    flush();
    return made;
  }

  function row(stage, current, most) {
    return h("a.pass", {href: fusec.link("", "passes", {pass: stage.id}).getAttribute("href"),
      style: `--depth:${stage.depth}`, "aria-current": current ? "true" : null},
    h("span.name", null, stage.name),
    h("span.bar", {style: `--share:${stage.ms / most}`}),
    h("span.ms", null, `${stage.ms.toFixed(2)} ms`),
    h("span.rewrites", null, stage.rewrites ? fusec.plural(stage.rewrites, "rewrite") : ""));
  }

  function comparison(data, graphs, sources, stages, current, parts) {
    const stage = stages[current];
    const left = parts.left === undefined ? stage.before : Number(parts.left);
    const right = parts.right === undefined ? stage.after : Number(parts.right);
    const titles = titlesOf(data, stages);
    const select = (side, value) => h("select", {"aria-label": `${side} stage`, change: (event) =>
      fusec.go("passes", {pass: stage.id, left, right, [side]: event.target.value})},
    [...titles].map(([number, title]) => h("option", {
      value: number, selected: number === value}, title)));
    const body = h("tbody");
    const table = h("table.diff", {tabindex: 0, "aria-label": "two stages"}, body);
    const bar = h("div.bar", null, select("left", left), h("span", null, "→"),
      select("right", right), fusec.searchField(() => table, "search both"),
      h("span.legend", null, h("mark.out", null, "removed"), h("mark.in", null, "added")));
    if (!graphs[left] || !graphs[right]) {
      return [bar, h("p", null, `A graph of ${fusec.number(data.graphs[left].count)} lines is left `
        + "out of the page: FUSEC_DUMP writes its text.")];
    }
    fusec.lineText = (line) => data.lines[line];
    const rules = rulesOf(stage, data, left, right);
    fill(body, fusec.sideBySide(graphs[left], graphs[right]), data, sources, rules);
    return [bar, table];
  }

  // Each graph once, named by the pass that left it.
  function titlesOf(data, stages) {
    const titles = new Map([[data.traced, "as traced"]]);
    for (const stage of stages) {
      const where = stage.body ? ` (${stage.body})` : "";
      if (!titles.has(stage.before)) titles.set(stage.before, `before ${stage.name}${where}`);
      if (!titles.has(stage.after)) titles.set(stage.after, `after ${stage.name}${where}`);
    }
    return titles;
  }

  function rulesOf(stage, data, left, right) {
    return stage.rules && left === stage.before && right === stage.after ? stage.rules : {};
  }

  function fill(body, rows, data, sources, rules) {
    const isNear = rows.map(() => false);
    rows.forEach((row, i) => {
      if (row[2]) return;
      for (let k = Math.max(0, i - CONTEXT); k <= Math.min(rows.length - 1, i + CONTEXT); k++) isNear[k] = true;
    });
    const whole = rows.length <= 60;
    const same = rows.every((row) => row[2]);
    for (let i = 0; i < rows.length; i++) {
      if (isNear[i] || whole) { body.append(line(rows[i], data, sources, rules)); continue; }
      let end = i;
      while (end < rows.length && !isNear[end]) end++;
      body.append(hidden(rows.slice(i, end), data, sources, rules, same && i === 0));
      i = end - 1;
    }
    if (same) body.prepend(h("tr", null, h("td.fine", {colspan: 2}, "these two are the same")));
  }

  function hidden(rows, data, sources, rules, isOpen) {
    const open = (row) => {
      const part = document.createDocumentFragment();
      rows.slice(0, 4000).forEach((one) => part.append(line(one, data, sources, rules)));
      row.replaceWith(part);
    };
    const row = h("tr.more", null, h("td", {colspan: 2}, h("button", {type: "button",
      click: () => open(row)}, `… ${fusec.plural(rows.length, "unchanged line")}`)));
    if (isOpen && rows.length < 4000) queueMicrotask(() => open(row));
    return row;
  }

  const nodeName = (text) => (/^\s*%("[^"]*"|[\w./-]+) =/.exec(text) || [])[1];

  function line([left, right, same], data, sources, rules) {
    const text = (number) => (number === null ? "" : data.lines[number]);
    const rule = !same && left !== null && rules[nodeName(text(left))];
    let cells = [[text(left)], [text(right)]];
    if (!same && left !== null && right !== null) cells = fusec.words(text(left), text(right));
    const kinds = same ? ["", ""] : [left === null ? "none" : "out", right === null ? "none" : "in"];
    const place = (number) => (number === null ? null : locLink(data.at[number], sources));
    const tip = rule ? rule.map((r) => `rule: ${r}`).join("\n") : null;
    return h("tr", {"data-row": true, class: same ? null : "changed"},
      h("td", {class: kinds[0], "data-tip": tip, tabindex: tip ? 0 : null},
        h("code", null, cells[0]), rule ? h("span.rule", null, "rule") : null, place(left)),
      h("td", {class: kinds[1]}, h("code", null, cells[1]), place(right)));
  }

  function locLink(number, sources) {
    if (number === undefined || number < 0) return null;
    return fusec.link(fusec.place(sources, number), "overview", {line: sources.locs[number][1]},
      {class: "at", tabindex: -1});
  }
})();
