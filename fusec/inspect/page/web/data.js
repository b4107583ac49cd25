"use strict";
// Sections of the page's document, inflated when they are first asked for, and small helpers.
const fusec = {views: {}, state: {trace: 0, view: "overview"}};

(() => {
  const known = new Map();

  async function inflated(element) {
    const packed = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  }

  // The section of that name; null where the document has none.
  fusec.section = (key) => {
    if (!known.has(key)) {
      const element = document.querySelector(`script[data-section="${key}"]`);
      known.set(key, element ? inflated(element) : Promise.resolve(null));
    }
    return known.get(key);
  };

  // The section of the trace that is shown.
  fusec.part = (name) => fusec.section(`${name}/${fusec.state.trace}`);

  // An element with attributes (functions are listeners) and children.
  fusec.h = (tag, attributes, ...children) => {
    const [name, ...classes] = tag.split(".");
    const element = document.createElement(name || "div");
    if (classes.length) element.className = classes.join(" ");
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") element.addEventListener(key, value);
      else element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined));
    return element;
  };

  fusec.svg = (tag, attributes, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (typeof value === "function") element.addEventListener(key, value);
      else if (value !== null && value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined));
    return element;
  };

  // Three digits and a unit: 24.0 kB.
  fusec.bytes = (count) => {
    if (count === null || count === undefined) return "";
    if (count < 10_000) return `${count} B`;
    const power = Math.min(4, Math.floor(Math.log10(count * 1.0005) / 3));
    const value = count / 10 ** (3 * power);
    return `${value.toPrecision(3).replace(/e.*/, "")} ${["", "kB", "MB", "GB", "TB"][power]}`;
  };

  fusec.number = (count) => (count === null || count === undefined ? ""
    : count.toLocaleString("en-GB"));

  fusec.micro = (us) => {
    if (us === null || us === undefined) return "";
    if (us >= 1e6) return `${(us / 1e6).toFixed(2)} s`;
    if (us >= 1e3) return `${(us / 1e3).toFixed(2)} ms`;
    return `${us.toFixed(us < 10 ? 2 : 1)} µs`;
  };

  fusec.plural = (count, one, many) => `${fusec.number(count)} ${count === 1 ? one : many || `${one}s`}`;

  fusec.short = (file) => file.replace(/^.*\//, "");

  // A place of the program as text.
  fusec.place = (sources, number) => {
    if (number < 0 || !sources.locs[number]) return "";
    const [file, line] = sources.locs[number];
    return `${fusec.short(sources.files[file].name)}:${line}`;
  };

  // A tip that follows the pointer, and the focus, over what has data-tip.
  const tip = () => document.getElementById("tip");
  fusec.showTip = (text, x, y) => {
    const box = tip();
    box.textContent = text;
    box.hidden = false;
    const {width, height} = box.getBoundingClientRect();
    box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    box.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 10) : y + 18}px`;
  };
  fusec.hideTip = () => { tip().hidden = true; };
})();
