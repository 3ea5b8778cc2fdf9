// The flame graph, root on top: each box is a function, as wide as what was allocated below it weighs.
"use strict";

const flame = (() => {
  const ROW = 21;
  const WEIGHTS = [["accesses", "Accesses"], ["bytes", "Bytes"], ["heat", "Heat"]];
  const EXPLAIN = {
    accesses: "Width: accesses to what was allocated below.",
    bytes: "Width: bytes allocated below.",
    heat: "Width: sum of the accesses per byte of the sites below, each at its peak size.",
  };

  function draw(section, view) {
    const tree = view.run.flame;
    const nodes = tree.parent.length;
    const children = Array.from({ length: nodes }, () => []);
    const depth = new Uint16Array(nodes);
    for (let at = 1; at < nodes; at++) {
      children[tree.parent[at]].push(at);
      depth[at] = depth[tree.parent[at]] + 1;
    }
    const state = { weight: "accesses", root: 0, focus: 0, search: "", boxes: [] };
    const canvas = dom.el("canvas", { class: "map", tabindex: 0, role: "application", "aria-roledescription": "flame graph",
      "aria-label": "allocation stacks", "aria-describedby": "flame-keys" });
    const hint = dom.el("p", { class: "hint" });
    const legend = dom.el("div", {});
    const spoken = dom.el("p", { class: "status", role: "status" });
    const found = dom.el("span", { class: "status", role: "status" });
    const weight = dom.choice("Width", WEIGHTS, "accesses", (choice) => {
      state.weight = choice;
      paint();
    });
    const input = dom.el("input", { type: "search", placeholder: "Search functions…", "aria-label": "Search the flame graph", autocomplete: "off" });
    input.addEventListener("input", () => {
      state.search = input.value.toLowerCase();
      paint();
    });
    const whole = dom.el("button", { type: "button", onclick: () => zoom(0) }, "Show all");

    const unnamed = (at) => (at === 0 ? "all allocations" : "(many that are too small to show)");
    const name = (at) => (tree.function[at] === null ? unnamed(at) : view.names[tree.function[at]].name);
    const place = (at) => (tree.function[at] === null ? "" : view.names[tree.function[at]].place);
    const heat = (at) => (tree.bytes[at] > 0 ? tree.accesses[at] / tree.bytes[at] : 0);
    const value = (at) => tree[state.weight][at];
    const matches = (at) => state.search !== "" && `${name(at)} ${place(at)}`.toLowerCase().includes(state.search);
    const shown = (number) => (state.weight === "bytes" ? numbers.bytes(number) : state.weight === "heat" ? `${numbers.rate(number)} per byte` : numbers.count(number));

    /** Boxes of the zoomed part: its ancestors in full width, then its descendants. */
    function layout(width) {
      const boxes = [];
      const above = [];
      for (let at = state.root; at !== 0; at = tree.parent[at]) above.unshift(tree.parent[at]);
      above.forEach((at) => boxes.push({ at, x: 0, width, row: depth[at], above: true }));
      const place = (at, x, share) => {
        boxes.push({ at, x, width: share, row: depth[at] });
        let left = x;
        for (const child of [...children[at]].sort((a, b) => value(b) - value(a))) {
          const part = value(at) > 0 ? (value(child) / value(at)) * share : 0;
          if (part >= 0.7) place(child, left, part);
          left += part;
        }
      };
      place(state.root, 0, width);
      return boxes;
    }

    function paint() {
      hint.textContent = `${EXPLAIN[state.weight]} Colour: accesses per byte allocated.`;
      const width = canvas.clientWidth;
      state.boxes = layout(width);
      const rows = Math.max(...state.boxes.map((box) => box.row)) + 1;
      const scale = colour.scale(state.boxes.map((box) => heat(box.at)));
      const context = dom.sharpen(canvas, width, rows * ROW + 2);
      context.font = `12px ${colour.named("font")}`;
      context.textBaseline = "middle";
      for (const box of state.boxes) one(context, box, scale);
      legend.replaceChildren(colour.legend(scale, "accesses per byte"));
      whole.disabled = state.root === 0;
      tellFound();
    }

    function one(context, box, scale) {
      const [top, hot] = [box.row * ROW, scale.place(heat(box.at))];
      const dim = box.above || (state.search !== "" && !matches(box.at));
      context.globalAlpha = dim ? 0.35 : 1;
      context.fillStyle = heat(box.at) > 0 ? colour.at(hot) : colour.named("cold");
      context.fillRect(box.x, top, Math.max(0.7, box.width - 1), ROW - 1);
      context.globalAlpha = 1;
      if (matches(box.at)) frame(context, box, colour.named("focus"), 2);
      if (document.activeElement === canvas && box.at === state.focus) frame(context, box, colour.named("focus"), 3);
      if (box.width < 30) return;
      const dark = heat(box.at) > 0 ? colour.wantsDarkText(hot) : colour.theme() === "light";
      context.fillStyle = dim ? colour.named("ink") : dark ? "#15171a" : "#ffffff";
      context.fillText(dom.shorten(context, name(box.at), box.width - 10), box.x + 5, top + ROW / 2);
    }

    function frame(context, box, style, line) {
      context.strokeStyle = style;
      context.lineWidth = line;
      context.strokeRect(box.x + 1, box.row * ROW + 1, Math.max(1, box.width - 3), ROW - 3);
    }

    /** The share of the whole that lies below matching functions, none counted twice. */
    function tellFound() {
      if (state.search === "") {
        found.textContent = "";
        return;
      }
      let [sum, count] = [0, 0];
      const within = new Uint8Array(nodes);
      for (let at = 1; at < nodes; at++) {
        within[at] = within[tree.parent[at]];
        if (matches(at)) {
          count += 1;
          if (!within[at]) sum += value(at);
          within[at] = 1;
        }
      }
      found.textContent = count === 0 ? "no match" : `${numbers.count(count)} boxes, ${numbers.percent(value(0) > 0 ? sum / value(0) : 0)} of ${state.weight}`;
    }

    function lines(at) {
      return [name(at), place(at), `${shown(value(at))} (${numbers.percent(value(0) > 0 ? value(at) / value(0) : 0)} of all)`,
        `${numbers.count(tree.accesses[at])} accesses, ${numbers.bytes(tree.bytes[at])}, ${numbers.rate(heat(at))} accesses per byte`].filter((line) => line !== "");
    }

    function zoom(at) {
      state.root = at;
      state.focus = at;
      paint();
      spoken.textContent = at === 0 ? "" : lines(at).join(" · ");
    }

    function move(to) {
      if (to === undefined) return;
      state.focus = to;
      paint();
      const box = state.boxes.find((entry) => entry.at === to);
      const area = canvas.getBoundingClientRect();
      if (box) dom.tip(lines(to), area.left + box.x, area.top + (box.row + 1) * ROW);
      spoken.textContent = lines(to).join(" · ");
    }

    /** Siblings that are drawn, from left to right. */
    function beside(step) {
      const parent = tree.parent[state.focus];
      const row = state.boxes.filter((box) => box.at !== 0 && tree.parent[box.at] === parent).map((box) => box.at);
      return row[row.indexOf(state.focus) + step];
    }

    function key(event) {
      if (event.key === "ArrowUp") move(state.focus === 0 ? undefined : tree.parent[state.focus]);
      else if (event.key === "ArrowDown") move(state.boxes.find((box) => box.at !== 0 && tree.parent[box.at] === state.focus)?.at);
      else if (event.key === "ArrowLeft") move(beside(-1));
      else if (event.key === "ArrowRight") move(beside(1));
      else if (event.key === "Enter" || event.key === " ") zoom(state.focus);
      else if (event.key === "Escape" || event.key === "Backspace") zoom(0);
      else return;
      event.preventDefault();
    }

    const boxAt = (event) => {
      const area = canvas.getBoundingClientRect();
      const [left, row] = [event.clientX - area.left, Math.floor((event.clientY - area.top) / ROW)];
      return state.boxes.find((box) => box.row === row && left >= box.x && left < box.x + box.width);
    };
    canvas.addEventListener("pointermove", (event) => {
      const box = boxAt(event);
      dom.tip(box ? lines(box.at) : null, event.clientX, event.clientY);
      canvas.style.cursor = box ? "pointer" : "default";
    });
    canvas.addEventListener("pointerleave", () => dom.tip(null));
    canvas.addEventListener("click", (event) => {
      const box = boxAt(event);
      if (box) zoom(box.at);
    });
    canvas.addEventListener("keydown", key);
    canvas.addEventListener("focus", paint);
    canvas.addEventListener("blur", () => {
      dom.tip(null);
      paint();
    });
    section.replaceChildren(...dom.heading("flame", "Flame graph of allocation stacks"),
      dom.el("div", { class: "controls" }, weight, input, found, whole), hint, legend, canvas, spoken,
      dom.el("p", { class: "hint", id: "flame-keys" }, "Click a box to zoom into it. Keyboard: arrows move, Enter zooms, Escape shows all."));
    paint();
    return { paint };
  }

  return { draw };
})();
