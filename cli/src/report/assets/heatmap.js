// The heat map: time across, sites, classes or addresses down. Rows that share a line show their hottest.
"use strict";

const heatmap = (() => {
  const FEW = 25;
  const HEIGHT = 480;
  const AXIS = 26;
  const EXPLAIN = {
    site: "One row for each allocation site, most accesses first. Colour: accesses to the site's objects for each byte of its peak size and second.",
    class: "One row for each size class, small chunks first. Colour: the hottest object of the class. An object's accesses are spread over the time between its first and last as its site's are.",
    address: "One row for each run of touched 4 KiB pages, low addresses first. Colour: the hottest counter of the row, so a hot word in a cold gigabyte stays visible. Times are estimated as in the view by class.",
  };

  function draw(section, view, jump) {
    const { map } = view.run;
    const state = { by: "site", all: false, row: 0, column: 0, picked: null, grid: null };
    const canvas = dom.el("canvas", { class: "map", tabindex: 0, role: "application", "aria-roledescription": "heat map",
      "aria-describedby": "heatmap-keys" });
    const hint = dom.el("p", { class: "hint" });
    const legend = dom.el("div", {});
    const spoken = dom.el("p", { class: "unseen", role: "status" });
    const panel = dom.el("div", { class: "panel", role: "status" });
    const size = dom.choice("Rows", [[false, `Hottest ${FEW}`], [true, "All rows"]], false, (all) => {
      state.all = all;
      renew();
    });
    const by = dom.choice("Rows by", [["site", "Sites"], ["class", "Classes"], ["address", "Addresses"]], "site", (choice) => {
      state.by = choice;
      renew();
    });

    /** The rows to show, each with its cells; what does not fit is pooled into the last. */
    function grid() {
      const columns = map.starts_ns.length;
      const { rows, cells } = map.views.find((one) => one.by === state.by);
      const values = numbers.decode(cells);
      const line = (at) => ({ ...rows[at], values: values.subarray(at * columns, (at + 1) * columns) });
      const lines = rows.map((_, at) => line(at));
      size.hidden = state.by !== "site" || lines.length <= FEW;
      if (size.hidden || state.all) return lines;
      const [kept, rest] = [lines.slice(0, FEW - 1), lines.slice(FEW - 1)];
      const pooled = Float64Array.from({ length: columns }, (_, at) => Math.max(...rest.map((row) => row.values[at])));
      const label = `the hottest of ${rest.length} or more further sites`;
      return [...kept, { label, bytes: rest.reduce((sum, row) => sum + row.bytes, 0), accesses: rest.reduce((sum, row) => sum + row.accesses, 0), values: pooled }];
    }

    function renew() {
      state.grid = grid();
      state.row = state.column = 0;
      state.picked = null;
      panel.replaceChildren();
      hint.textContent = EXPLAIN[state.by];
      paint();
    }

    const name = (row) => row.label || view.titleOf(row.site);

    function layout() {
      const width = canvas.clientWidth;
      const rows = Math.max(1, state.grid.length);
      const height = Math.max(4, Math.min(22, Math.floor(HEIGHT / rows)));
      const named = height >= 12;
      const left = named ? Math.min(300, Math.floor(width * 0.34)) : 14;
      return { width, height, named, left, right: 10, bottom: rows * height };
    }

    function paint() {
      const at = layout();
      const columns = map.starts_ns.length;
      const scale = colour.scale(state.grid.flatMap((row) => [...row.values]));
      const context = dom.sharpen(canvas, at.width, at.bottom + AXIS);
      context.font = `11px ${colour.named("font")}`;
      context.textBaseline = "middle";
      state.grid.forEach((row, index) => {
        const top = index * at.height;
        row.values.forEach((value, column) => {
          const [left, right] = [x(at, column), x(at, column + 1)];
          context.fillStyle = value > 0 ? colour.at(scale.place(value)) : colour.named("cold");
          context.fillRect(left, top, right - left + (columns > 60 ? 0.3 : -0.5), at.height - (at.height > 6 ? 1 : 0));
        });
        if (at.named) {
          context.fillStyle = colour.named("muted");
          context.textAlign = "right";
          context.fillText(dom.shorten(context, name(row), at.left - 10), at.left - 6, top + at.height / 2);
        }
      });
      axis(context, at);
      mark(context, at);
      legend.replaceChildren(colour.legend(scale, "accesses per byte and second"));
    }

    const x = (at, column) => {
      const start = column < map.starts_ns.length ? map.starts_ns[column] : map.end_ns;
      const first = map.starts_ns[0];
      return at.left + ((start - first) / Math.max(1, map.end_ns - first)) * (at.width - at.left - at.right);
    };

    function axis(context, at) {
      context.fillStyle = colour.named("muted");
      context.textAlign = "center";
      const span = map.end_ns - map.starts_ns[0];
      for (const time of numbers.ticks(span, Math.max(2, Math.floor(at.width / 130)))) {
        const place = at.left + (time / span) * (at.width - at.left - at.right);
        context.fillRect(place, at.bottom, 1, 4);
        context.textAlign = place + 20 > at.width ? "right" : time === 0 ? "left" : "center";
        context.fillText(numbers.duration(time), place, at.bottom + 14);
      }
      if (!at.named) {
        context.save();
        context.translate(6, at.bottom / 2);
        context.rotate(-Math.PI / 2);
        context.textAlign = "center";
        context.fillText(state.by === "address" ? "← higher addresses" : "← fewer accesses", 0, 0);
        context.restore();
      }
    }

    /** Frames the cell under the keyboard and the picked row. */
    function mark(context, at) {
      context.strokeStyle = colour.named("ink");
      if (state.picked !== null) {
        context.lineWidth = 1.5;
        context.strokeRect(at.left - 1, state.picked * at.height - 0.5, at.width - at.left - at.right + 2, at.height + 0.5);
      }
      if (document.activeElement === canvas && state.grid.length > 0) {
        context.lineWidth = 2.5;
        context.strokeStyle = colour.named("focus");
        const [left, right] = [x(at, state.column), x(at, state.column + 1)];
        context.strokeRect(left - 1, state.row * at.height - 1, right - left + 2, at.height + 1);
      }
    }

    function lines(row, column) {
      const end = column + 1 < map.starts_ns.length ? map.starts_ns[column + 1] : map.end_ns;
      return [name(row), `${numbers.rate(row.values[column])} accesses per byte and second`,
        `from ${numbers.duration(map.starts_ns[column])} to ${numbers.duration(end)}`,
        `in all ${numbers.count(row.accesses)} accesses, ${numbers.bytes(row.bytes)}`];
    }

    function cellAt(event) {
      const at = layout();
      const box = canvas.getBoundingClientRect();
      const row = Math.floor((event.clientY - box.top) / at.height);
      const place = event.clientX - box.left;
      if (row < 0 || row >= state.grid.length || place < at.left || place > at.width - at.right) return null;
      let column = 0;
      while (column + 1 < map.starts_ns.length && x(at, column + 1) <= place) column += 1;
      return { row, column };
    }

    function pick(row) {
      state.picked = row;
      const line = state.grid[row];
      const site = line.site !== undefined && !(state.by === "site" && line.label) ? line.site : null;
      const place = site === null ? null : view.labelOf(site);
      const peak = Math.max(...line.values);
      panel.replaceChildren(
        dom.el("h3", {}, name(line)),
        dom.facts([
          ["Accesses", numbers.count(line.accesses)], ["Bytes", numbers.bytes(line.bytes)],
          ["Hottest", `${numbers.rate(peak)} accesses per byte and second, at ${numbers.duration(map.starts_ns[line.values.indexOf(peak)])}`],
          [state.by === "site" ? "Where" : "Hottest site", place ? `${state.by === "site" ? "" : place.name} ${place.place}`.trim() : null],
        ]),
        site !== null && view.bySite.has(site) ? dom.el("button", { type: "button", onclick: () => jump(site) }, "Show the site in the table") : null);
      paint();
    }

    function say() {
      spoken.textContent = lines(state.grid[state.row], state.column).join(", ");
    }

    function key(event) {
      const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -1e9], End: [0, 1e9], PageUp: [-10, 0], PageDown: [10, 0] };
      if (state.grid.length === 0) return;
      if (moves[event.key]) {
        const [down, right] = moves[event.key];
        state.row = Math.max(0, Math.min(state.grid.length - 1, state.row + down));
        state.column = Math.max(0, Math.min(map.starts_ns.length - 1, state.column + right));
        paint();
        const at = layout();
        const box = canvas.getBoundingClientRect();
        dom.tip(lines(state.grid[state.row], state.column), box.left + x(at, state.column + 1), box.top + (state.row + 1) * at.height);
        say();
      } else if (event.key === "Enter" || event.key === " ") pick(state.row);
      else if (event.key === "Escape") dom.tip(null);
      else return;
      event.preventDefault();
    }

    canvas.addEventListener("keydown", key);
    canvas.addEventListener("focus", paint);
    canvas.addEventListener("blur", () => {
      dom.tip(null);
      paint();
    });
    canvas.addEventListener("pointermove", (event) => {
      const cell = cellAt(event);
      dom.tip(cell && lines(state.grid[cell.row], cell.column), event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerleave", () => dom.tip(null));
    canvas.addEventListener("click", (event) => {
      const cell = cellAt(event);
      if (cell) {
        Object.assign(state, cell);
        pick(cell.row);
      }
    });
    section.replaceChildren(...dom.heading("heatmap", "Heat map"),
      dom.el("div", { class: "controls" }, by, size), hint, legend, canvas,
      dom.el("p", { class: "hint", id: "heatmap-keys" }, "Point at a cell for its numbers, select a row with a click. Keyboard: arrows, Home, End, Enter."), spoken, panel);
    canvas.setAttribute("aria-label", "accesses per byte and second over time");
    renew();
    return { paint };
  }

  return { draw };
})();
