"use strict";
// The frame: tabs, the address, themes, keys.
(() => {
  const {h, state} = fusec;
  fusec.tabs = [["overview", "Overview"], ["passes", "Passes"], ["graph", "Graph"],
    ["kernels", "Kernels"], ["runs", "Runs"], ["compared", "Comparison"]];

  // The address holds what is shown, so that it can be kept, sent, and gone back to.
  fusec.go = (view, parts = {}) => {
    const words = new URLSearchParams({trace: state.trace, ...parts});
    const hash = `#${view}?${words}`;
    if (location.hash === hash) return show();
    location.hash = hash;
    return null;
  };

  // A link to a view; its parts are what is selected there.
  fusec.link = (text, view, parts, attributes) => h("a", {
    href: `#${view}?${new URLSearchParams({trace: state.trace, ...parts})}`, ...attributes}, text);

  function parsed() {
    const [view, words] = location.hash.slice(1).split("?");
    const parts = Object.fromEntries(new URLSearchParams(words || ""));
    const there = state.tabs.some(([name]) => name === view);
    return {view: there ? view : state.tabs[0][0], parts};
  }

  let turn = 0;
  async function show() {
    const {view, parts} = parsed();
    const mine = ++turn;
    state.view = view;
    state.trace = Math.min(Number(parts.trace ?? state.head.traces.length - 1) || 0,
      Math.max(0, state.head.traces.length - 1));
    state.parts = parts;
    document.getElementById("trace").value = String(state.trace);
    for (const tab of document.querySelectorAll("#tabs a")) {
      const chosen = tab.dataset.view === view;
      tab.setAttribute("aria-selected", String(chosen));
      tab.href = `#${tab.dataset.view}?trace=${state.trace}`;
    }
    fusec.hideTip();
    const main = document.getElementById("main");
    const made = await fusec.views[view](parts);
    if (mine !== turn) return;
    state.keys = made.keys || {};
    if (main.firstChild !== made.element) main.replaceChildren(made.element);
    main.className = view;
    if (made.shown) made.shown(parts);
    document.documentElement.dataset.ready = `${view} ${turn}`;
  }
  fusec.show = show;

  fusec.begin = async () => {
    state.head = await fusec.section("head");
    const comparison = await fusec.section("comparison");
    state.tabs = fusec.tabs.filter(([view]) => (view === "compared" ? comparison
      : state.head.traces.length || view === "runs"));
    if (comparison) state.tabs = [state.tabs.at(-1), ...state.tabs.slice(0, -1)];
    document.getElementById("title").textContent = state.head.function;
    document.getElementById("tabs").append(...state.tabs.map(([view, title]) => h("a", {
      role: "tab", href: `#${view}`, "data-view": view}, title)));
    traces();
    theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    document.getElementById("theme").addEventListener("click", () => theme());
    document.getElementById("help").addEventListener("click", help);
    addEventListener("hashchange", show);
    addEventListener("keydown", key);
    tips();
    await show();
  };

  function traces() {
    const select = document.getElementById("trace");
    state.head.traces.forEach((trace, i) => select.append(h("option", {value: i},
      trace.title || `${i + 1 + state.head.left_out}: ${trace.signature}`)));
    document.getElementById("trace-label").hidden = state.head.traces.length < 2;
    select.addEventListener("change", () => {
      state.trace = Number(select.value);
      fusec.go(state.view);
    });
  }

  function theme(name) {
    const root = document.documentElement;
    root.dataset.theme = name || (root.dataset.theme === "dark" ? "light" : "dark");
    document.getElementById("theme").textContent = root.dataset.theme === "dark" ? "light" : "dark";
    dispatchEvent(new Event("fusec-theme"));
  }

  function help() {
    const dialog = document.getElementById("keys");
    if (!dialog.open) dialog.showModal();
  }

  function key(event) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { fusec.hideTip(); if (typing) event.target.blur(); }
    if (typing) return;
    const own = state.keys[event.key];
    if (own) { event.preventDefault(); own(event); return; }
    const tab = /^[1-6]$/.test(event.key) && fusec.tabs[Number(event.key) - 1];
    if (tab && state.tabs.some(([view]) => view === tab[0])) fusec.go(tab[0]);
    else if (event.key === "/") { const field = document.querySelector("#main input[type=search]");
      if (field) { event.preventDefault(); field.focus(); field.select(); } }
    else if (event.key === "t") theme();
    else if (event.key === "?") help();
  }

  function tips() {
    const over = (event) => {
      const owner = event.target.closest && event.target.closest("[data-tip]");
      if (!owner) { if (event.target.id !== "canvas") fusec.hideTip(); return; }
      const box = owner.getBoundingClientRect();
      fusec.showTip(owner.dataset.tip, event.clientX || box.left, event.clientY || box.bottom);
    };
    document.addEventListener("mouseover", over);
    document.addEventListener("focusin", over);
  }

  // A search field; ``root()`` is the element that it looks in, or ``find(text)`` does it.
  fusec.searchField = (root, label = "search") => {
    const count = h("span.count", {"aria-live": "polite"});
    let found = null;
    const field = h("input", {type: "search", placeholder: `${label} (/)`, "aria-label": label,
      input: () => {
        found = typeof root === "function" ? fusec.search(root(), field.value) : root.find(field.value);
        count.textContent = field.value ? fusec.plural(found.count, "hit") : "";
        if (field.value) found.next();
      },
      keydown: (event) => { if (event.key === "Enter" && found) found.next(); }});
    return h("span.search", null, field, count);
  };
})();
