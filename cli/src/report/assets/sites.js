// The table of allocation sites.
"use strict";

const sites = (() => {
  function badges(list) {
    return list.map((mark) => dom.el("span", { class: `badge ${mark.startsWith("never") ? "never" : ""}` }, mark));
  }

  /** A site's name with its place and the caller that tells it apart, or with its callers where the place is unknown. */
  function named(label, marks, callers, apart) {
    const beyond = apart === undefined ? "" : ` ← ${apart}`;
    const place = label.place ? `${label.place}${beyond}` : `← ${callers.slice(0, 3).join(" ← ")}`;
    return dom.el("span", { class: "named" }, dom.el("span", { class: "name" }, label.name), badges(marks),
      label.place || callers.length > 0 ? dom.el("span", { class: "place" }, place) : null);
  }

  function draw(section, view) {
    const { sites: rows, names } = view;
    const marks = (at) => view.marks(rows.reads[at], rows.writes[at], rows.threads[at]);
    const perByte = (at) => (rows.bytes[at] > 0 ? view.accesses(rows, at) / rows.bytes[at] : 0);
    const scale = colour.scale(strip.values(rows.strip));
    const columns = [
      { title: "Site", text: true, first: "up", value: (at) => view.label(at).name, show: (at) => named(view.label(at), marks(at), view.callers(at), view.apart(at)) },
      { title: "Accesses", value: (at) => view.accesses(rows, at), show: (at) => numbers.count(view.accesses(rows, at)) },
      { title: "Per byte", hint: "accesses for each byte allocated", value: perByte, show: (at) => numbers.rate(perByte(at)) },
      { title: "Heat by offset", hint: "reads above, writes below, summed over listed objects; sorts by the hottest part",
        value: (at) => Math.max(0, ...numbers.decode(rows.strip[at].reads), ...numbers.decode(rows.strip[at].writes)), show: (at) => strip.small(rows.strip[at], scale) },
      { title: "Reads", value: (at) => rows.reads[at], show: (at) => numbers.count(rows.reads[at]) },
      { title: "Writes", value: (at) => rows.writes[at], show: (at) => numbers.count(rows.writes[at]) },
      { title: "Allocs", value: (at) => rows.allocs[at], show: (at) => numbers.count(rows.allocs[at]) },
      { title: "Bytes", hint: "bytes of all allocations", value: (at) => rows.bytes[at], show: (at) => numbers.bytes(rows.bytes[at]) },
      { title: "Peak", hint: "most bytes alive at a time", value: (at) => rows.peak[at], show: (at) => numbers.bytes(rows.peak[at]) },
      { title: "Lifetime", hint: "median of freed objects", value: (at) => (rows.lifetime[at][0] > 0 ? rows.lifetime[at][1] : -1),
        show: (at) => (rows.lifetime[at][0] > 0 ? numbers.duration(rows.lifetime[at][1]) : "not freed") },
      { title: "Threads", hint: "most threads that accessed one object", value: (at) => rows.threads[at], show: (at) => numbers.threads(rows.threads[at]) },
    ];
    const has = (mark) => (at) => marks(at).some((one) => one.startsWith(mark));
    const search = (at) => rows.stack[at].map((name) => `${names[name].name} ${names[name].place}`).join(" ");
    const built = table.build(columns, {
      caption: "allocation sites", rows: rows.id.map((_, at) => at), sort: 1, search,
      filters: [["All", () => true], ["Never read", has("never read")], ["Never written", has("never written")], ["Never accessed", has("never accessed")], ["Shared", has("shared")]],
      details: (at) => details(view, at), empty: "No site is like that.",
    });
    section.replaceChildren(...dom.heading("sites", "Allocation sites", `${numbers.count(view.run.site_count)} call stacks allocated. `
      + "Open a row for its stack and its heat by offset; a strip runs from the first byte to the last, reads above, writes below."), built.element);
    return { reveal: (id) => view.bySite.has(id) && built.reveal(view.bySite.get(id)) };
  }

  function details(view, at) {
    const { sites: rows, names } = view;
    const [freed, half, most] = rows.lifetime[at];
    const [median, high, max] = rows.per_object[at];
    const calls = rows.stack[at].map((name) => dom.el("li", {}, dom.el("span", { class: "name" }, names[name].name), dom.el("span", { class: "place" }, names[name].place)));
    return dom.el("div", { class: "beside" },
      dom.el("div", {}, dom.el("h4", {}, "Heat by offset"), strip.chart(rows.strip[at], Infinity),
        dom.facts([
          ["Read", numbers.bytes(rows.read_bytes[at])], ["Written", numbers.bytes(rows.write_bytes[at])], ["Live at the end", numbers.bytes(rows.live[at])],
          ["Freed", `${numbers.count(rows.frees[at])} of ${numbers.count(rows.allocs[at])}`],
          ["Accesses of an object", `median ${numbers.count(median)}, 99 % ${numbers.count(high)}, most ${numbers.count(max)}`],
          ["Lifetime", freed > 0 ? `median ${numbers.duration(half)}, 99 % ${numbers.duration(most)}` : "none was freed"],
          ["Site", `number ${rows.id[at]} in the report`],
        ])),
      dom.el("div", {}, dom.el("h4", {}, "Call stack, innermost first"), calls.length > 0 ? dom.el("ol", { class: "stack" }, ...calls) : dom.el("p", { class: "hint" }, "unknown")));
  }

  return { draw, named };
})();
