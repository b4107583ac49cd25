"use strict";
// Boxes in layers: dagre where there are few, and a layout in linear time where there are many.
(() => {
  const FEW = 220; // boxes up to which dagre takes some tenths of a second at most
  const GAP_X = 22, GAP_Y = 42;

  // Places boxes {w, h} (sets x, y of their middles); edges are pairs of numbers. The size of all.
  fusec.arranged = (boxes, edges) => {
    if (!boxes.length) return {w: 0, h: 0};
    if (boxes.length <= FEW && edges.length <= 3 * FEW) byDagre(boxes, edges);
    else byLayers(boxes, edges);
    let left = Infinity, top = Infinity, right = -Infinity, bottom = -Infinity;
    for (const b of boxes) {
      left = Math.min(left, b.x - b.w / 2);
      right = Math.max(right, b.x + b.w / 2);
      top = Math.min(top, b.y - b.h / 2);
      bottom = Math.max(bottom, b.y + b.h / 2);
    }
    for (const b of boxes) { b.x -= left; b.y -= top; }
    return {w: right - left, h: bottom - top};
  };

  function byDagre(boxes, edges) {
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({nodesep: GAP_X, ranksep: GAP_Y, ranker: boxes.length > 60 ? "tight-tree"
      : "network-simplex"});
    graph.setDefaultEdgeLabel(() => ({}));
    boxes.forEach((b, i) => graph.setNode(String(i), {width: b.w, height: b.h}));
    for (const [a, b] of edges) if (a !== b) graph.setEdge(String(a), String(b));
    dagre.layout(graph);
    boxes.forEach((b, i) => { const n = graph.node(String(i)); b.x = n.x; b.y = n.y; });
  }

  // Sugiyama's steps: layers by the longest way, orders by medians, places near neighbours.
  function byLayers(boxes, edges) {
    const n = boxes.length, above = boxes.map(() => []), below = boxes.map(() => []);
    const layer = new Int32Array(n);
    for (const [a, b] of edges) if (a < b) { below[a].push(b); above[b].push(a); }
    for (let i = 0; i < n; i++) for (const b of below[i]) layer[b] = Math.max(layer[b], layer[i] + 1);
    for (let i = n - 1; i >= 0; i--) { // what has no operand stands right above its first reader
      if (!above[i].length && below[i].length) layer[i] = Math.min(...below[i].map((b) => layer[b])) - 1;
    }
    const layers = [];
    for (let i = 0; i < n; i++) (layers[layer[i]] = layers[layer[i]] || []).push(i);
    for (let l = 0; l < layers.length; l++) layers[l] = layers[l] || [];
    const at = new Float64Array(n);
    layers.forEach((row) => row.forEach((i, k) => { at[i] = k; }));
    for (let turn = 0; turn < 6; turn++) {
      const near = turn % 2 ? below : above, order = turn % 2 ? [...layers].reverse() : layers;
      for (const row of order) {
        const want = new Map(row.map((i) => [i, near[i].length ? median(near[i].map((j) => at[j])) : at[i]]));
        row.sort((a, b) => want.get(a) - want.get(b) || at[a] - at[b]);
        row.forEach((i, k) => { at[i] = k; });
      }
    }
    const x = new Float64Array(n);
    for (const row of layers) { let left = 0; for (const i of row) { x[i] = left + boxes[i].w / 2; left += boxes[i].w + GAP_X; } }
    for (let turn = 0; turn < 6; turn++) {
      const near = turn % 2 ? below : above;
      for (const row of turn % 2 ? [...layers].reverse() : layers) settle(row, near, x, boxes);
    }
    let y = 0;
    for (const row of layers) {
      const high = Math.max(0, ...row.map((i) => boxes[i].h));
      for (const i of row) { boxes[i].x = x[i]; boxes[i].y = y + high / 2; }
      y += high + (row.length ? GAP_Y : 0);
    }
  }

  // Moves the boxes of a layer towards their neighbours, keeping their order and gaps.
  function settle(row, near, x, boxes) {
    const want = row.map((i) => (near[i].length ? mean(near[i].map((j) => x[j])) : x[i]));
    const gap = (k) => (boxes[row[k]].w + boxes[row[k - 1]].w) / 2 + GAP_X;
    const right = [...want], left = [...want];
    for (let k = 1; k < row.length; k++) right[k] = Math.max(want[k], right[k - 1] + gap(k));
    for (let k = row.length - 2; k >= 0; k--) left[k] = Math.min(want[k], left[k + 1] - gap(k + 1));
    let last = -Infinity;
    row.forEach((i, k) => {
      const middle = (right[k] + left[k]) / 2;
      x[i] = k ? Math.max(middle, last + gap(k)) : middle;
      last = x[i];
    });
  }

  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
})();
