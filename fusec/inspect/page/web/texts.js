"use strict";
// Texts of graphs, their differences by line and word, and panes of linked lines.
(() => {
  const {h} = fusec;

  // The numbers of the lines of each graph, from edits of the one before.
  fusec.linesOf = (part) => {
    let last = [];
    return part.graphs.map((graph) => {
      if (!graph.edits) return null;
      const lines = [];
      let at = 0;
      for (const [from, to, fresh] of graph.edits) {
        for (; at < from; at++) lines.push(last[at]);
        for (const line of fresh) lines.push(line);
        at = to;
      }
      for (; at < last.length; at++) lines.push(last[at]);
      last = lines;
      return lines;
    });
  };

  // Rows of two texts side by side: [left, right], null where one has none; equal ones first.
  fusec.sideBySide = (left, right) => {
    const rows = [];
    let start = 0;
    const most = Math.min(left.length, right.length);
    while (start < most && left[start] === right[start]) start++;
    let end = 0;
    while (end < most - start && left[left.length - 1 - end] === right[right.length - 1 - end]) end++;
    for (let i = 0; i < start; i++) rows.push([left[i], right[i], true]);
    middle(left.slice(start, left.length - end), right.slice(start, right.length - end), rows);
    for (let i = end; i > 0; i--) rows.push([left[left.length - i], right[right.length - i], true]);
    return rows;
  };

  function middle(left, right, rows) {
    const parts = Diff.diffArrays(left, right, {timeout: 3000})
      || [{removed: true, value: left}, {added: true, value: right}];
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i], next = parts[i + 1];
      if (!part.added && !part.removed) {
        for (const line of part.value) rows.push([line, line, true]);
      } else if (next && (next.added || next.removed)) {
        const [out, into] = part.removed ? [part.value, next.value] : [next.value, part.value];
        pair(out, into, rows);
        i++;
      } else {
        for (const line of part.value) rows.push(part.removed ? [line, null] : [null, line]);
      }
    }
  }

  const nameOf = (text) => (/^\s*(%?"[^"]*"|%?[\w./-]+) =/.exec(text) || [null, null])[1];

  // Lines of the same name stand beside each other, those between them in their order.
  function pair(out, into, rows) {
    const text = fusec.lineText, names = new Map();
    into.forEach((line, j) => { const name = nameOf(text(line)); if (name && !names.has(name)) names.set(name, j); });
    let i = 0, j = 0;
    const between = (lefts, rights) => {
      for (let k = 0; k < Math.max(lefts.length, rights.length); k++) rows.push([lefts[k] ?? null, rights[k] ?? null]);
    };
    out.forEach((line, at) => {
      const other = names.get(nameOf(text(line)));
      if (other === undefined || other < j) return;
      between(out.slice(i, at), into.slice(j, other));
      rows.push([line, into[other]]);
      i = at + 1;
      j = other + 1;
    });
    between(out.slice(i), into.slice(j));
  }

  fusec.lineText = (line) => String(line);

  // The words of two lines that differ, as two lists of pieces of text.
  fusec.words = (before, after) => {
    const sides = [[], []];
    for (const part of Diff.diffWordsWithSpace(before, after)) {
      if (!part.added) sides[0].push(part.removed ? h("mark.out", null, part.value) : part.value);
      if (!part.removed) sides[1].push(part.added ? h("mark.in", null, part.value) : part.value);
    }
    return sides;
  };

  // A pane of numbered lines; ``link(number)`` gives what a line is linked with.
  fusec.pane = (title, lines, options = {}) => {
    const {first = 1, link, numbers = true, decorate} = options;
    const list = h("ol.lines", {tabindex: 0, "aria-label": title});
    const rows = lines.map((text, i) => {
      const row = h("li", {"data-row": i}, numbers ? h("span.no", null, String(first + i)) : null,
        h("span.text", null, text || " "), decorate ? decorate(i) : null);
      if (link && link(i)) row.classList.add("linked");
      return row;
    });
    list.append(...rows);
    return {element: h("section.pane", null, h("h3", null, title), list), list, rows};
  };

  // Searching the lines of an element: marks hits, and goes from one to the next.
  fusec.search = (root, text) => {
    root.querySelectorAll("li.hit, tr.hit").forEach((row) => row.classList.remove("hit", "now"));
    if (!text) return {count: 0, next: () => {}};
    const wanted = text.toLowerCase();
    const hits = [...root.querySelectorAll("li[data-row], tr[data-row]")].filter(
      (row) => row.textContent.toLowerCase().includes(wanted));
    hits.forEach((row) => row.classList.add("hit"));
    let at = -1;
    return {count: hits.length, next: () => {
      if (!hits.length) return;
      if (at >= 0) hits[at].classList.remove("now");
      at = (at + 1) % hits.length;
      hits[at].classList.add("now");
      hits[at].scrollIntoView({block: "center"});
    }};
  };
})();
