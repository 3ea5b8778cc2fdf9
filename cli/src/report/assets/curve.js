// The placement curve: how much fast memory takes which share of the accesses.
"use strict";

const curve = (() => {
  const [HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [320, 46, 24, 12, 40];
  let width = 720;
  const NAMES = { site: "by site", object: "by object", page: "by 4 KiB page" };
  const EXPLAIN = "Hand out fast memory to the hottest first: which share of the accesses do x bytes take? Sizes are added up as if everything lived at once "
    + "(sites at their peak), so real needs are smaller. Dotted: the same memory handed out blindly.";

  function draw(section, view) {
    const { curves } = view.run;
    // Text must not shrink with a narrow screen, so the drawing does.
    width = Math.max(320, Math.min(720, section.clientWidth - 30));
    const most = Math.max(...curves.map((one) => one.bytes), 2);
    const least = Math.max(1, Math.min(...curves.filter((one) => one.points.length > 0).map((one) => one.points[0][0])));
    const low = Math.max(least, most / 1e9);
    const x = (bytes) => LEFT + (Math.log(Math.max(bytes, low) / low) / Math.log(Math.max(2, most / low))) * (width - LEFT - RIGHT);
    const y = (share) => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
    const chart = dom.svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, class: "curve", role: "img",
      "aria-label": "placement curve; the table below has its marks" });
    grid(chart, x, y, low, most);
    chart.append(dom.svg("path", { class: "blind", d: blind(x, y, low, curves.find((one) => one.by === "page").bytes || most) }));
    for (const one of curves) line(chart, one, x, y);
    const guide = dom.svg("line", { class: "guide", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    chart.append(guide);
    chart.addEventListener("pointermove", (event) => point(event, chart, guide, curves, low, most));
    chart.addEventListener("pointerleave", () => {
      guide.setAttribute("visibility", "hidden");
      dom.tip(null);
    });
    section.replaceChildren(...dom.heading("placement", "Placement curve", EXPLAIN),
      dom.el("div", { class: "beside curves" }, dom.el("figure", {}, chart), marks(curves)));
    return { paint: () => draw(section, view) };
  }

  function grid(chart, x, y, low, most) {
    for (const share of [0, 0.25, 0.5, 0.75, 0.9, 0.99]) {
      chart.append(dom.svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(share), y2: y(share), class: share === 0 ? "axis" : "grid" }));
      if (share !== 0.99) chart.append(dom.svg("text", { x: LEFT - 6, y: y(share) + 4, "text-anchor": "end", class: "tick" }, `${share * 100} %`));
    }
    const factor = 2 ** Math.max(1, Math.ceil(Math.log2(most / low) / (width / 100)));
    for (let bytes = 2 ** Math.ceil(Math.log2(low)); bytes <= most; bytes *= factor) {
      chart.append(dom.svg("text", { x: x(bytes), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle", class: "tick" }, numbers.roundBytes(bytes)),
        dom.svg("line", { x1: x(bytes), x2: x(bytes), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4, class: "axis" }));
    }
    chart.append(dom.svg("text", { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle", class: "tick" }, "bytes of fast memory (logarithmic)"));
  }

  /** The share that memory takes if the accesses were spread evenly. */
  function blind(x, y, low, all) {
    const steps = Array.from({ length: 61 }, (_, at) => low * (all / low) ** (at / 60));
    return steps.map((bytes, at) => `${at === 0 ? "M" : "L"}${x(bytes).toFixed(1)} ${y(Math.min(1, bytes / all)).toFixed(1)}`).join("");
  }

  function line(chart, one, x, y) {
    if (one.points.length === 0) return;
    const path = one.points.map(([bytes, share], at) => {
      const place = `${x(bytes).toFixed(1)} ${y(share).toFixed(1)}`;
      return at === 0 ? `M${x(bytes).toFixed(1)} ${y(0)}L${place}` : `L${place}`;
    });
    chart.append(dom.svg("path", { class: `line ${one.by}`, d: path.join("") }));
    for (const { share, bytes, taken, count } of one.marks) {
      if (bytes === null) continue;
      const dot = dom.svg("circle", { cx: x(bytes), cy: y(taken), r: 4, class: `dot ${one.by}` });
      dot.append(dom.svg("title", {}, `${share} % ${NAMES[one.by]}: ${numbers.bytes(bytes)} in ${numbers.count(count)}`));
      chart.append(dot);
    }
  }

  function shareAt(points, bytes) {
    let share = 0;
    for (const [size, taken] of points) {
      if (size > bytes) break;
      share = taken;
    }
    return share;
  }

  function point(event, chart, guide, curves, low, most) {
    const box = chart.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * width;
    const along = (place - LEFT) / (width - LEFT - RIGHT);
    if (along < 0 || along > 1) return;
    const bytes = low * Math.max(2, most / low) ** along;
    guide.setAttribute("x1", place);
    guide.setAttribute("x2", place);
    guide.setAttribute("visibility", "visible");
    dom.tip([numbers.bytes(bytes), ...curves.map((one) => `${NAMES[one.by]}: ${numbers.percent(shareAt(one.points, bytes))}`)], event.clientX, event.clientY);
  }

  /** The marks in numbers, which also names the lines. */
  function marks(curves) {
    const head = dom.el("tr", {}, dom.el("th", { scope: "col", class: "text" }, "To take"), ...curves.map((one) =>
      dom.el("th", { scope: "col" }, dom.el("i", { class: `swatch ${one.by}` }), NAMES[one.by])));
    const rows = [50, 90, 99].map((share) => dom.el("tr", {}, dom.el("th", { scope: "row", class: "text" }, `${share} %`), ...curves.map((one) => {
      const mark = one.marks.find((entry) => entry.share === share);
      if (!mark || mark.bytes === null) return dom.el("td", { title: "the objects in the report take less" }, "not listed");
      return dom.el("td", {}, numbers.bytes(mark.bytes), dom.el("small", {}, ` in ${numbers.count(mark.count)}`));
    })));
    const all = dom.el("tr", {}, dom.el("th", { scope: "row", class: "text" }, "everything"), ...curves.map((one) =>
      dom.el("td", {}, numbers.bytes(one.bytes), dom.el("small", {}, ` in ${numbers.count(one.count)}`))));
    return dom.el("div", { class: "table" }, dom.el("div", { class: "scroll" }, dom.el("table", { class: "marks" },
      dom.el("caption", {}, "bytes to take a share of the accesses"), dom.el("thead", {}, head), dom.el("tbody", {}, ...rows, all))));
  }

  return { draw };
})();
