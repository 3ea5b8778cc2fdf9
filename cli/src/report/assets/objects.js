// The table of objects; a row opens to its heat by offset and its life.
"use strict";

const objects = (() => {
  const [WIDTH, HEIGHT] = [640, 76];

  function draw(section, view, jump) {
    const { objects: rows } = view;
    const perByte = (at) => view.accesses(rows, at) / Math.max(1, rows.size[at]);
    const scale = colour.scale(strip.values(rows.strip));
    const callersOf = (id) => (view.bySite.has(id) ? view.callers(view.bySite.get(id)) : []);
    const life = (at) => (rows.free[at] ?? view.run.elapsed_ns) - rows.alloc[at];
    const columns = [
      { title: "Object", text: true, first: "up", value: (at) => rows.addr[at].padStart(20), show: (at) => dom.el("code", {}, rows.addr[at]) },
      { title: "Size", value: (at) => rows.size[at], show: (at) => numbers.bytes(rows.size[at]) },
      { title: "Accesses", value: (at) => view.accesses(rows, at), show: (at) => numbers.count(view.accesses(rows, at)) },
      { title: "Per byte", value: perByte, show: (at) => numbers.rate(perByte(at)) },
      { title: "Heat by offset", hint: "reads above, writes below; sorts by the hottest part",
        value: (at) => Math.max(0, ...numbers.decode(rows.strip[at].reads), ...numbers.decode(rows.strip[at].writes)), show: (at) => strip.small(rows.strip[at], scale) },
      { title: "Reads", value: (at) => rows.reads[at], show: (at) => numbers.count(rows.reads[at]) },
      { title: "Writes", value: (at) => rows.writes[at], show: (at) => numbers.count(rows.writes[at]) },
      { title: "Threads", value: (at) => rows.threads[at], show: (at) => numbers.threads(rows.threads[at]) },
      { title: "Life", hint: "from allocation to free, or to the end", value: life, show: (at) => numbers.duration(life(at)) + (rows.free[at] === null ? " +" : "") },
      { title: "Site", text: true, first: "up", value: (at) => view.labelOf(rows.site[at]).name,
        show: (at) => sites.named(view.labelOf(rows.site[at]), view.marks(rows.reads[at], rows.writes[at], 0), callersOf(rows.site[at]), view.bySite.has(rows.site[at]) ? view.apart(view.bySite.get(rows.site[at])) : undefined) },
    ];
    const built = table.build(columns, {
      caption: "objects", rows: rows.addr.map((_, at) => at), sort: 2, details: (at) => details(view, at, jump),
      search: (at) => `${rows.addr[at]} ${rows.label[at]} ${view.labelOf(rows.site[at]).name} ${view.labelOf(rows.site[at]).place}`,
      filters: [["All", () => true], ["Live at the end", (at) => rows.free[at] === null], ["Freed", (at) => rows.free[at] !== null], ["Shared", (at) => rows.threads[at] > 1]],
    });
    section.replaceChildren(...dom.heading("objects", "Objects", "One allocation a row. Open a row for its heat by offset, its life and its threads."), built.element);
  }

  function details(view, at, jump) {
    const { objects: rows } = view;
    const site = rows.site[at];
    const time = (ns) => (ns === null ? null : numbers.duration(ns));
    return dom.el("div", { class: "beside" },
      dom.el("div", {}, dom.el("h4", {}, "Heat by offset"), strip.chart(rows.strip[at], rows.size[at]), dom.el("h4", {}, "Life"), life(view, at)),
      dom.el("div", {}, dom.facts([
        ["Name", rows.label[at]], ["Address", rows.addr[at]], ["Size", `${numbers.bytes(rows.size[at])}, class ${rows.class[at]}`],
        ["Site", view.labelOf(site).name], ["", view.labelOf(site).place],
        ["Reads", `${numbers.count(rows.reads[at])} of ${numbers.bytes(rows.read_bytes[at])}`],
        ["Writes", `${numbers.count(rows.writes[at])} of ${numbers.bytes(rows.write_bytes[at])}`],
        ["Threads", `${numbers.threads(rows.threads[at])} accessed it`],
        ["Allocated", time(rows.alloc[at])], ["First access", time(rows.first[at]) ?? "none"], ["Last access", time(rows.last[at]) ?? "none"],
        ["Freed", time(rows.free[at]) ?? "no: live at the end"],
      ]), view.bySite.has(site) ? dom.el("button", { type: "button", onclick: () => jump(site) }, "Show the site in the table") : null));
  }

  /** The object within the run: alive, in use, and below it what its site did. */
  function life(view, at) {
    const { objects: rows, run } = view;
    const end = Math.max(1, run.elapsed_ns, run.map.end_ns);
    const x = (ns) => 8 + (Math.min(ns, end) / end) * (WIDTH - 16);
    const bar = (from, to, y, height, kind, words) => {
      const shape = dom.svg("rect", { x: x(from), y, width: Math.max(2, x(to) - x(from)), height, class: kind });
      shape.append(dom.svg("title", {}, words));
      return shape;
    };
    const chart = dom.svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "life", role: "img", "aria-label": "the object's life within the run" });
    chart.append(bar(0, end, 4, 14, "whole", "the run"), bar(rows.alloc[at], rows.free[at] ?? end, 4, 14, "alive", "alive"));
    if (rows.first[at] !== null && rows.last[at] !== null) chart.append(bar(rows.first[at], rows.last[at], 7, 8, "used", "from the first to the last access"));
    siteRow(view, rows.site[at], chart, x);
    for (const time of numbers.ticks(end, 6)) {
      chart.append(dom.svg("text", { x: x(time), y: HEIGHT - 4, class: "tick", "text-anchor": time === 0 ? "start" : "middle" }, numbers.duration(time)));
    }
    return dom.el("figure", {}, chart, dom.el("p", { class: "key" }, dom.el("i", { class: "alive" }), "alive", dom.el("i", { class: "used" }), "between first and last access",
      ". Below: the accesses of its site over time, where the heat map has it."));
  }

  function siteRow(view, id, chart, x) {
    const { map } = view.run;
    const { rows, cells } = map.views[0];
    const at = rows.findIndex((row) => row.site === id && !row.label);
    if (at < 0) return;
    const columns = map.starts_ns.length;
    const values = numbers.decode(cells).subarray(at * columns, (at + 1) * columns);
    const scale = colour.scale(values);
    values.forEach((value, column) => {
      const to = column + 1 < columns ? map.starts_ns[column + 1] : map.end_ns;
      const from = map.starts_ns[column];
      const shape = dom.svg("rect", { x: x(from), y: 26, width: Math.max(1, x(to) - x(from)), height: 14, fill: value > 0 ? colour.at(scale.place(value)) : colour.named("cold") });
      shape.append(dom.svg("title", {}, `${numbers.rate(value)} accesses per byte and second`));
      chart.append(shape);
    });
  }

  return { draw };
})();
