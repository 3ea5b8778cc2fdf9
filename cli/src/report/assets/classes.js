// The size classes with what they waste.
"use strict";

const classes = (() => {
  function draw(section, view) {
    const rows = view.run.classes;
    const each = (title, key, show, hint) => ({ title, hint, value: (at) => rows[at][key] ?? -1, show: (at) => (rows[at][key] === null ? "–" : show(rows[at][key])) });
    const columns = [
      { title: "Class", first: "up", value: (at) => at, show: (at) => String(rows[at].id) },
      { title: "Chunk", first: "up", value: (at) => rows[at].chunk || Infinity, show: (at) => (rows[at].chunk === 0 ? "pages" : numbers.bytes(rows[at].chunk)) },
      each("Per slab", "per_slab", numbers.count, "chunks in a slab page of 1 MiB"),
      each("Slabs", "slabs", numbers.count, "slab pages at the end"),
      each("Used", "used", numbers.count, "chunks in use at the end"),
      each("Free", "free", numbers.count, "chunks without an object at the end"),
      each("Objects", "allocs", numbers.count, "allocated in all"),
      each("Accesses", "accesses", numbers.count),
      each("Median", "p50", numbers.count, "accesses of an object: half have at most this many"),
      each("Most", "max", numbers.count, "accesses of the hottest object"),
      each("Slack", "slack", numbers.percent, "share of their chunks that listed objects did not ask for"),
      each("Waste: slack", "slack_bytes", numbers.bytes, "of live objects at the end"),
      each("free", "free_bytes", numbers.bytes, "bytes of free chunks at the end"),
      each("tail", "tail_bytes", numbers.bytes, "bytes at the ends of slab pages"),
    ];
    for (const row of rows) row.accesses = row.reads + row.writes;
    const built = table.build(columns, { caption: "size classes", rows: rows.map((_, at) => at), sort: 0, empty: "The report has no classes." });
    section.replaceChildren(...dom.heading("classes", "Size classes",
      "As in stats slabs, at the end of the run. Slack is what chunks are larger than their objects, free is chunks without an object, tail is what a slab page has left over."), built.element);
  }

  return { draw };
})();
