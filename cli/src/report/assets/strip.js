// Heat by offset: a small strip for tables, a chart of reads and writes for details.
"use strict";

const strip = (() => {
  const WIDTH = 128;
  const HEIGHT = 18;

  function heights(packed) {
    return { reads: numbers.decode(packed.reads), writes: numbers.decode(packed.writes) };
  }

  /** Two lanes, reads above writes, from the first byte to the last. `scale` is shared by the strips of a table. */
  function small(packed, scale) {
    const canvas = dom.el("canvas", { class: "strip", role: "img", "aria-label": words(packed) });
    const { reads, writes } = heights(packed);
    canvas.style.width = `${WIDTH}px`;
    const context = dom.sharpen(canvas, WIDTH, HEIGHT);
    [reads, writes].forEach((lane, row) => {
      const top = row * (HEIGHT / 2 + 0.5);
      lane.forEach((value, at) => {
        const [left, right] = [(at * WIDTH) / lane.length, ((at + 1) * WIDTH) / lane.length];
        context.fillStyle = value > 0 ? colour.at(scale.place(value)) : colour.named("cold");
        context.fillRect(left, top, right - left + 0.3, HEIGHT / 2 - 0.5);
      });
    });
    return canvas;
  }

  function words(packed) {
    const { reads, writes } = heights(packed);
    const hottest = (lane) => lane.reduce((best, value, at) => (value > lane[best] ? at : best), 0);
    const total = reads.map((value, at) => value + writes[at]);
    if (total.length === 0) return "no heat by offset";
    return `heat by offset, hottest from byte ${hottest(total) * packed.cell} on`;
  }

  /** The values of many strips, for a scale. */
  function* values(list) {
    for (const packed of list) {
      yield* numbers.decode(packed.reads);
      yield* numbers.decode(packed.writes);
    }
  }

  /** Reads upwards, writes downwards, both logarithmic, with axes. */
  function chart(packed, size) {
    const { reads, writes } = heights(packed);
    if (reads.length === 0) return dom.el("p", { class: "hint" }, "No access, so there is no heat by offset.");
    const [width, half, left] = [640, 70, 8];
    const peak = Math.max(...reads, ...writes, 1);
    const tall = (value) => (value > 0 ? Math.max(2, (half * Math.log1p(value)) / Math.log1p(peak)) : 0);
    const step = (width - 2 * left) / reads.length;
    const chart = dom.svg("svg", { viewBox: `0 0 ${width} ${2 * half + 40}`, class: "offsets", role: "img",
      "aria-label": `reads and writes by offset; ${words(packed)}` });
    const bar = (at, value, up) => {
      const height = tall(value);
      const shape = dom.svg("rect", { x: left + at * step + 0.4, width: Math.max(0.8, step - 0.8), height,
        y: up ? 12 + half - height : 13 + half, class: up ? "reads" : "writes" });
      const range = `bytes ${at * packed.cell} to ${Math.min(size, (at + 1) * packed.cell) - 1}`;
      shape.append(dom.svg("title", {}, `${range}: about ${numbers.count(value)} ${up ? "reads" : "writes"} of the hottest granule`));
      return shape;
    };
    reads.forEach((value, at) => value > 0 && chart.append(bar(at, value, true)));
    writes.forEach((value, at) => value > 0 && chart.append(bar(at, value, false)));
    chart.append(dom.svg("line", { x1: left, x2: width - left, y1: half + 12.5, y2: half + 12.5, class: "axis" }));
    const end = packed.cell * reads.length;
    for (const value of numbers.ticks(end, 5, true)) {
      const x = left + (value / end) * (width - 2 * left);
      chart.append(dom.svg("text", { x, y: 2 * half + 34, class: "tick", "text-anchor": value === 0 ? "start" : "middle" },
        value === 0 ? "offset 0" : numbers.roundBytes(value)));
    }
    const key = dom.el("p", { class: "key" }, dom.el("i", { class: "reads" }), "reads (up)", dom.el("i", { class: "writes" }),
      `writes (down); logarithmic, tallest ≈ ${numbers.count(peak)} accesses; ${numbers.bytes(packed.cell)} a bar, the hottest granule of each`);
    return dom.el("figure", {}, chart, key);
  }

  return { small, values, chart };
})();
