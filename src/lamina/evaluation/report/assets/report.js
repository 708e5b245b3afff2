// Draws the charts of a report from the data in the page. The tables beside them need no script.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const place = (name) => document.querySelector(`[data-chart="${name}"]`);
  // Distinct in hue and lightness, on white and on black; lines also differ in their dashes.
  const COLOURS = ["#8a8f98", "#1f77c4", "#d9822b", "#2a9d6f", "#a05cc9", "#c94f6d", "#7f8c2a", "#2aa5b8"];
  const DASHES = ["none", "7 3", "2 3", "9 3 2 3"];
  const PARTS = [
    ["queue", "queue"], ["wait", "wait for the pull queue"], ["pull", "pull"], ["unpack", "unpack"],
    ["start", "start"], ["run", "run"], ["unknown", "bound, never started"],
  ];
  const LANE = 12, GAP = 10, PAGE_PODS = 250;

  const dash = (profile) => DASHES[data.profiles.indexOf(profile) % DASHES.length];
  const colour = {domain: data.profiles, range: COLOURS, legend: data.profiles.length > 1};
  const seconds = (value) => `${value.toLocaleString("en", {maximumFractionDigits: 2})} s`;
  function bytes(value) {
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let unit = 0;
    while (Math.abs(value) >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
    return `${value.toLocaleString("en", {maximumSignificantDigits: 3})} ${units[unit]}`;
  }
  const width = (name) => Math.max(320, Math.min(1120, place(name).clientWidth || 800));

  function show(name, options) {
    const target = place(name);
    if (!target) return null;
    const plot = Plot.plot({
      width: width(name), style: {background: "transparent", color: "inherit", fontSize: "13px"},
      ariaLabel: target.getAttribute("aria-label"), ...options,
    });
    target.replaceChildren(plot);
    return plot;
  }

  // -- lines ---------------------------------------------------------------------------------------------------------

  function starts() {
    const points = data.profiles.flatMap((profile) => {
      const values = data.starts[profile] || [];
      return values.map((value, index) => ({profile, value, share: (index + 1) / values.length}));
    });
    show("starts", {
      height: 340, color: colour, grid: true, marginLeft: 55, marginBottom: 45, marginTop: 30,
      x: {type: "sqrt", label: "seconds from arrival to running", nice: true},
      y: {domain: [0, 1], label: "share of the pods", tickFormat: "%"},
      marks: [
        ...data.profiles.map((profile) => Plot.line(points.filter((one) => one.profile === profile), {
          x: "value", y: "share", stroke: "profile", strokeWidth: 2, curve: "step-after", strokeDasharray: dash(profile),
        })),
        Plot.ruleY([0]),
        Plot.tip(points, Plot.pointer({x: "value", y: "share", title: (one) =>
          `${one.profile}: ${Math.round(one.share * 100)} % within ${seconds(one.value)}`, fill: "var(--paper)"})),
      ],
    });
  }

  function overTime(name, values, label, format, window) {
    const points = data.lines.flatMap((line) => line.series.at.flatMap((at, index) => {
      const value = line.series[values][index];
      const outside = window && line.series.last_arrival > line.series.first_arrival
        && (at < line.series.first_arrival || at > line.series.last_arrival);
      return value === null || outside ? [] : [{profile: line.profile, seed: line.seed, at, value}];
    }));
    show(name, {
      height: 300, color: colour, grid: true, marginLeft: 75, marginBottom: 45, marginTop: 30,
      x: {label: "time (s)"}, y: {label, tickFormat: format, zero: !window, nice: true},
      marks: [
        ...data.profiles.map((profile) => Plot.line(points.filter((one) => one.profile === profile), {
          x: "at", y: "value", z: "seed", stroke: "profile", strokeWidth: 1.6, curve: "step-after", strokeOpacity: 0.85,
          strokeDasharray: dash(profile),
        })),
        Plot.tip(points, Plot.pointer({x: "at", y: "value", title: (one) =>
          `${one.profile}, seed ${one.seed}\n${seconds(one.at)}: ${format(one.value)}`, fill: "var(--paper)"})),
      ],
    });
  }

  // Ratios within a decade are drawn on a linear axis, because most ticks of a logarithmic one would have no label.
  function ratioScale(rows, count) {
    const values = [1, ...rows.flatMap((one) => [one.low ?? one.ratio, one.ratio, one.high ?? one.ratio])];
    const low = Math.min(...values), high = Math.max(...values);
    return high < 10 * low ? {type: "linear", zero: false, nice: true, ticks: count} : {type: "log", tickFormat: "~g", ticks: count};
  }

  function ratios() {
    if (!place("ratios") || !data.ratios.length) return;
    const narrow = width("ratios") < 560;
    const figures = [...new Set(data.ratios.map((one) => one.figure))];
    const others = data.profiles.filter((one) => one !== data.baseline);
    show("ratios", {
      height: 60 + (figures.length * (18 + 12 * others.length)), marginLeft: 10, marginRight: 30, marginBottom: 45, color: colour,
      x: {label: `ratio to ${data.baseline}`, grid: true, ...ratioScale(data.ratios, narrow ? 4 : 8)},
      y: {domain: others, axis: null}, fy: {domain: figures, label: null}, marginTop: 30,
      facet: {data: data.ratios, y: "figure", marginLeft: narrow ? 90 : 120, marginRight: narrow ? 96 : 130},
      marks: [
        Plot.ruleX([1], {strokeDasharray: "4 3"}),
        Plot.ruleY(data.ratios.filter((one) => one.low !== null), {fy: "figure", y: "profile", x1: "low", x2: "high", stroke: "profile", strokeWidth: 2}),
        Plot.dot(data.ratios, {fy: "figure", y: "profile", x: "ratio", fill: "profile", r: 4, tip: true, title: (one) =>
          `${one.figure}, ${one.profile}: ${one.ratio.toFixed(2)}` + (one.low === null ? "" : ` [${one.low.toFixed(2)}, ${one.high.toFixed(2)}]`)}),
      ],
    });
  }

  // How ratios depend on the levels of each factor of a study.
  function sensitivity() {
    (data.sensitivity || []).forEach((rows, number) => {
      const name = `sensitivity-${number}`;
      if (!place(name) || !rows.length) return;
      const figures = [...new Set(rows.map((one) => one.figure))];
      show(name, {
        height: 60 + figures.length * 110, color: colour, marginLeft: 55, marginRight: 110, marginBottom: 45, grid: true,
        x: {type: "point", domain: [...new Set(rows.map((one) => one.level))], label: null},
        y: {label: "ratio", ...ratioScale(rows, 4)}, fy: {domain: figures, label: null},
        marks: [
          Plot.ruleY([1], {strokeDasharray: "4 3"}),
          Plot.line(rows, {fy: "figure", x: "level", y: "ratio", z: "profile", stroke: "profile"}),
          Plot.dot(rows, {fy: "figure", x: "level", y: "ratio", fill: "profile", r: 4, tip: true,
            title: (one) => `${one.profile}, ${one.level}: ${one.figure} ${one.ratio.toFixed(2)}`}),
        ],
      });
    });
  }

  // -- pods on their nodes -------------------------------------------------------------------------------------------

  const total = (pod) => PARTS.reduce((sum, [part]) => sum + pod[part], 0);
  let pages = [], chosenPod = null;

  // Pages of whole nodes, each with about PAGE_PODS pods; pods without a node come last.
  function paginate(run) {
    const groups = [...run.nodes, ""].map((node) => ({node, pods: run.pods.filter((pod) => pod.node === node)}));
    pages = [];
    let count = 0;
    for (const group of groups) {
      if (group.node === "" && !group.pods.length) continue;
      if (!pages.length || (count + group.pods.length > PAGE_PODS && count)) { pages.push([]); count = 0; }
      pages[pages.length - 1].push(group);
      count += group.pods.length;
    }
    const name = (group) => group.node || "no node";
    byId("timeline-nodes").replaceChildren(...pages.map((page, index) => {
      const option = document.createElement("option");
      option.value = index;
      option.textContent = page.length === 1 ? name(page[0]) : `${name(page[0])} to ${name(page[page.length - 1])}`;
      return option;
    }));
  }

  // The part of the run that is drawn: a share of it, from the slider's position on.
  function span(run) {
    const length = (run.seconds || 1) / Number(byId("timeline-zoom").value);
    const from = Number(byId("timeline-from").value) / 1000 * ((run.seconds || 1) - length);
    return [from, from + length];
  }

  // Zooming keeps the chosen pod in view.
  function zoom() {
    const run = data.runs[Number(byId("timeline-run").value)];
    const length = (run.seconds || 1) / Number(byId("timeline-zoom").value);
    const rest = (run.seconds || 1) - length;
    byId("timeline-from").disabled = rest <= 0;
    if (chosenPod && rest > 0) {
      byId("timeline-from").value = Math.round(1000 * Math.min(1, Math.max(0, chosenPod.arrived - length / 4) / rest));
    }
    timeline();
  }

  function timeline() {
    const run = data.runs[Number(byId("timeline-run").value)];
    const page = pages[Number(byId("timeline-nodes").value)] || [];
    const narrow = width("timeline") < 560;
    const bars = [], spans = [], nodes = [];
    const [from, to] = span(run);
    let lane = 0;
    for (const {node, pods} of page) {
      const first = lane, free = [];
      for (const pod of pods) {
        let here = free.findIndex((until) => until <= pod.arrived);
        if (here < 0) { here = free.length; free.push(0); }
        const end = pod.arrived + total(pod);
        free[here] = end;
        const y1 = first + here, y2 = y1 + 0.86;
        if (end < from || pod.arrived > to) continue;
        bars.push({pod, x1: Math.max(pod.arrived, from), x2: Math.min(end, to), y1, y2});
        let at = pod.arrived;
        for (const [part] of PARTS) {
          if (pod[part] > 0 && at <= to && at + pod[part] >= from) {
            spans.push({part, x1: Math.max(at, from), x2: Math.min(at + pod[part], to), y1, y2});
          }
          at += pod[part];
        }
      }
      lane = first + Math.max(1, free.length) + GAP / LANE;
      nodes.push({node: node || "no node", y: (first + lane - GAP / LANE) / 2, end: lane - GAP / LANE / 2});
    }
    const longest = Math.max(...nodes.map((one) => one.node.length), 1);
    const plot = show("timeline", {
      height: Math.max(100, lane * LANE + 70), marginTop: 45, marginLeft: Math.min(narrow ? 90 : 220, 16 + longest * 7.5),
      x: {label: "time (s)", axis: "top", domain: span(run), grid: true, ticks: narrow ? 4 : undefined},
      y: {axis: null, domain: [lane || 1, 0]},
      marks: [
        Plot.ruleY(nodes, {y: "end", strokeOpacity: 0.25}),
        Plot.text(nodes, {y: "y", frameAnchor: "left", text: "node", textAnchor: "end", dx: -8, lineWidth: narrow ? 8 : 20, textOverflow: "ellipsis"}),
        Plot.rect(spans, {x1: "x1", x2: "x2", y1: "y1", y2: "y2", fill: (one) => `var(--${one.part})`, ariaHidden: "true"}),
        Plot.rect(bars, {
          x1: "x1", x2: "x2", y1: "y1", y2: "y2", fill: "transparent", stroke: "currentColor", strokeOpacity: 0.35,
          className: "pods", ariaLabel: (one) => describe(one.pod), render: (index, scales, values, dimensions, context, next) => {
            const group = next(index, scales, values, dimensions, context);
            [...group.children].forEach((element, position) => prepare(element, bars[index[position]].pod, position));
            return group;
          },
        }),
      ],
    });
    const group = plot && plot.querySelector(".pod") && plot.querySelector(".pod").parentNode;
    if (group) {
      plot.setAttribute("role", "group");
      group.setAttribute("role", "toolbar");
      group.setAttribute("aria-label", "pods, in order of their arrival on each node");
    }
  }

  const describe = (pod) => `${pod.pod} on ${pod.node || "no node"}, arrived at ${seconds(pod.arrived)}, ${PARTS
    .filter(([part]) => pod[part] > 0).map(([part, name]) => `${name} ${seconds(pod[part])}`).join(", ")}`;

  // One pod is in the tab order; arrow keys move from pod to pod.
  function prepare(element, pod, position) {
    element.classList.add("pod");
    element.setAttribute("role", "button");
    element.setAttribute("aria-pressed", String(pod === chosenPod));
    element.setAttribute("tabindex", position === 0 ? "0" : "-1");
    element.addEventListener("click", () => explain(element, pod));
    element.addEventListener("keydown", (event) => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      const all = [...element.parentNode.children];
      const next = event.key === "Home" ? all[0] : event.key === "End" ? all[all.length - 1] : step && all[all.indexOf(element) + step];
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); explain(element, pod); }
      else if (next) { event.preventDefault(); focusOn(element, next); }
      else if (step) event.preventDefault();
    });
  }

  function focusOn(before, element) {
    before.setAttribute("tabindex", "-1");
    element.setAttribute("tabindex", "0");
    element.focus();
  }

  function explain(element, pod) {
    chosenPod = pod;
    for (const one of element.parentNode.children) {
      one.setAttribute("aria-pressed", String(one === element));
      one.setAttribute("tabindex", one === element ? "0" : "-1");
    }
    const line = (text, tag = "p") => Object.assign(document.createElement(tag), {textContent: text});
    const head = line("");
    head.append(line(pod.pod, "strong"), ` ${pod.node ? `on ${pod.node}` : "has no node"}; at the end: ${pod.phase}`);
    const parts = PARTS.filter(([part]) => pod[part] > 0).map(([part, name]) => `${name} ${seconds(pod[part])}`).join(", ");
    const lines = [`Arrived at ${seconds(pod.arrived)}: ${parts}.`,
      `Needed ${bytes(pod.bytes_wanted)}, downloaded ${bytes(pod.bytes_pulled)}.`,
      ...(pod.why.length ? pod.why : ["The scheduler gave no reason for this placement."])];
    byId("why").replaceChildren(head, ...lines.map((text) => line(text)));
  }

  function setUpTimeline() {
    if (!place("timeline")) return;
    const used = new Set(data.runs.flatMap((run) => run.pods.flatMap((pod) => PARTS.filter(([part]) => pod[part] > 0).map(([part]) => part))));
    byId("timeline-legend").replaceChildren(...PARTS.filter(([part]) => used.has(part)).map(([part, name]) => {
      const entry = Object.assign(document.createElement("span"), {textContent: name});
      entry.style.setProperty("--swatch", `var(--${part})`);
      return entry;
    }));
    const choose = () => { chosenPod = null; paginate(data.runs[Number(byId("timeline-run").value)]); timeline(); };
    byId("timeline-run").addEventListener("change", choose);
    byId("timeline-nodes").addEventListener("change", timeline);
    byId("timeline-zoom").addEventListener("change", zoom);
    byId("timeline-from").addEventListener("input", timeline);
    choose();
  }

  // -- nodes and layers ----------------------------------------------------------------------------------------------

  const mapped = data.runs.filter((run) => run.layers.length);
  let times = [];

  function layerMap() {
    const run = mapped[Number(byId("map-run").value)];
    const now = times[Number(byId("map-time").value)] ?? 0;
    const state = new Map();
    const key = (node, layer) => node * run.layers.length + layer;
    let news = [];
    for (const [at, node, layer, held] of run.changes) {
      if (at > now) break;
      state.set(key(node, layer), held ? (at === now && now > 0 ? "gained" : "held") : (at === now ? "lost" : "empty"));
      if (at === now && now > 0) news.push(`${run.nodes[node]} ${held ? "receives" : "removes"} ${run.layers[layer].name}`);
    }
    const cells = run.nodes.flatMap((name, node) => run.layers.map((layer, column) =>
      ({name, node, layer, column, state: state.get(key(node, column)) || "empty"})));
    const count = cells.filter((one) => one.state === "held" || one.state === "gained").length;
    if (news.length > 4) news = [...news.slice(0, 3), `${news.length - 3} more changes`];
    byId("map-at").textContent = `${seconds(now)}: ${count} of ${cells.length} cells held${news.length ? `; ${news.join(", ")}` : ""}`;
    const narrow = width("map") < 560;
    const names = {held: "held", gained: "just received", lost: "just removed", empty: "not held"};
    const longest = Math.max(...run.layers.map((one) => one.name.length));
    const below = Math.min(110, 20 + longest * 7);
    show("map", {
      height: 60 + below + run.nodes.length * (run.nodes.length > 12 ? 16 : 24),
      marginLeft: Math.min(narrow ? 90 : 220, 16 + Math.max(...run.nodes.map((one) => one.length)) * 7.5), marginBottom: below,
      x: {type: "band", domain: run.layers.map((_, index) => index), tickFormat: (index) => run.layers[index].name, tickRotate: -60, label: null,
        ticks: run.layers.map((_, index) => index).filter((index) => index % Math.ceil(run.layers.length / (narrow ? 14 : 48)) === 0)},
      y: {domain: run.nodes, label: null},
      color: {type: "categorical", domain: Object.values(names), range: ["var(--held)", "var(--gained)", "var(--lost)", "var(--empty)"], legend: true},
      marks: [
        Plot.cell(cells, {x: "column", y: "name", fill: (one) => names[one.state], inset: 0.6,
          title: (one) => `${one.name}, ${one.layer.name} (${bytes(one.layer.bytes)}): ${names[one.state]}`, tip: !narrow}),
      ],
    });
  }

  function setUpMap() {
    if (!place("map")) return;
    const slider = byId("map-time");
    const choose = () => {
      const run = mapped[Number(byId("map-run").value)];
      times = [...new Set([0, ...run.changes.map(([at]) => at)])];
      slider.max = times.length - 1;
      slider.value = times.length - 1;
      layerMap();
    };
    const step = (by) => { slider.value = Number(slider.value) + by; layerMap(); };
    byId("map-run").addEventListener("change", choose);
    slider.addEventListener("input", layerMap);
    byId("map-back").addEventListener("click", () => step(-1));
    byId("map-forward").addEventListener("click", () => step(1));
    choose();
  }

  // -- the page ------------------------------------------------------------------------------------------------------

  function lines() {
    ratios();
    sensitivity();
    starts();
    overTime("bytes", "bytes_pulled", "downloaded", bytes, false);
    overTime("peak", "peak_load", "max / mean", (value) => value.toFixed(2), true);
    overTime("imbalance", "imbalance", "sd / mean", (value) => value.toFixed(2), true);
  }
  lines();
  setUpTimeline();
  setUpMap();
  let drawnFor = document.documentElement.clientWidth, waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (document.documentElement.clientWidth === drawnFor) return;
      drawnFor = document.documentElement.clientWidth;
      lines();
      if (place("timeline")) timeline();
      if (place("map")) layerMap();
    }, 150);
  });
  // Short tables are printed; long ones stay closed unless the reader opened them.
  window.addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details")) if (one.querySelectorAll("tr").length <= 40) one.open = true;
  });
})();
