"use strict";
// A roofline (Williams, Waterman and Patterson, 2009): a dot a kernel, under the device's ceilings.
(() => {
  const {h, svg} = fusec;
  const WIDTH = 460, HEIGHT = 300, LEFT = 54, BOTTOM = 40, TOP = 14, RIGHT = 16;

  fusec.roofline = (part, runs, machine) => {
    const dots = part.kernels.map((kernel, k) => ({k, name: kernel.name,
      ...fusec.figures(kernel, runs, machine)})).filter((d) => d.gflops > 0 && d.intensity > 0);
    if (!dots.length) {
      return h("p.fine", null, runs && runs.steps ? "" : "No times: give arguments to save_html, or "
        + "--args to python -m fusec view, and calls are measured.");
    }
    const devices = machine.rates.filter((r) => dots.some((d) => d.device === r.device));
    const xs = dots.map((d) => d.intensity), ys = dots.map((d) => d.gflops);
    devices.forEach((r) => { xs.push(r.flops_per_ns / r.bytes_per_ns); ys.push(r.flops_per_ns); });
    const x = scale(xs, LEFT, WIDTH - RIGHT), y = scale(ys, HEIGHT - BOTTOM, TOP);
    const picture = svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "plot", role: "img",
      "aria-label": "roofline"});
    for (const t of x.ticks) {
      picture.append(svg("line", {class: "grid", x1: x(t), x2: x(t), y1: TOP, y2: HEIGHT - BOTTOM}),
        svg("text", {x: x(t), y: HEIGHT - BOTTOM + 15, "text-anchor": "middle"}, label(t)));
    }
    for (const t of y.ticks) {
      picture.append(svg("line", {class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(t), y2: y(t)}),
        svg("text", {x: LEFT - 6, y: y(t) + 4, "text-anchor": "end"}, label(t)));
    }
    picture.append(svg("text", {x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle"},
      "operations for each byte"),
    svg("text", {transform: `translate(12 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`,
      "text-anchor": "middle"}, "GFLOP/s"));
    devices.forEach((r) => picture.append(ceiling(r, x, y)));
    dots.forEach((d) => picture.append(svg("a", {href: fusec.link("", "kernels", {kernel: d.k})
      .getAttribute("href"), "data-tip": `${d.name}: ${label(d.gflops)} GFLOP/s, ${label(d.gbps)} GB/s`
      + (d.percent === null ? "" : `, ${d.percent.toFixed(0)} % of the limit`)},
    svg("circle", {class: "dot", cx: x(d.intensity), cy: y(d.gflops), r: 5.5}),
    dots.length <= 12 ? svg("text", {x: x(d.intensity) + 9, y: y(d.gflops) + 4}, d.name) : null)));
    return h("section", null, h("h2", null, "Roofline"), picture, devices.length ? null
      : h("p.fine", null, "Ceilings are drawn where the device's rates were measured."));
  };

  function ceiling(r, x, y) {
    const knee = r.flops_per_ns / r.bytes_per_ns, low = x.from, high = x.to;
    const at = (i) => y(Math.min(r.flops_per_ns, i * r.bytes_per_ns));
    const left = Math.max(low, y.from / r.bytes_per_ns); // below it the roof is under the frame
    return svg("g", null, svg("path", {class: "ceiling",
      d: `M${x(left)} ${at(left)}L${x(Math.min(high, Math.max(low, knee)))} ${at(knee)}L${x(high)} ${at(high)}`}),
    svg("text", {class: "ceiling-text", x: x(high) - 2, y: at(high) - 5, "text-anchor": "end"},
      `${r.device}: ${label(r.bytes_per_ns)} GB/s, ${label(r.flops_per_ns)} GFLOP/s`));
  }

  // A logarithmic scale over whole powers of ten.
  function scale(values, from, to) {
    const low = Math.floor(Math.log10(Math.min(...values)) - 0.15);
    const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values)) + 0.15));
    const f = (v) => from + (to - from) * (Math.log10(Math.max(v, 1e-12)) - low) / (high - low);
    f.from = 10 ** low;
    f.to = 10 ** high;
    f.ticks = Array.from({length: high - low + 1}, (_, i) => 10 ** (low + i));
    return f;
  }

  const label = (v) => (v >= 1e4 || v < 1e-3 ? v.toExponential(0) : String(Number(v.toPrecision(3))));
  fusec.scale = scale;
})();
