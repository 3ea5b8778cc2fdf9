// The overview: what ran, how it was watched, the totals, what stands out, and what the numbers do not say.
"use strict";

const overview = (() => {
  function tile(value, label, detail) {
    return dom.el("div", { class: "tile" }, dom.el("div", { class: "value" }, value), dom.el("div", { class: "name" }, label),
      dom.el("div", { class: "detail" }, detail));
  }

  function tiles({ totals }) {
    const all = totals.reads + totals.writes;
    const kernel = totals.kernel_reads + totals.kernel_writes;
    const share = all > 0 ? totals.reads / all : 0;
    const bar = dom.el("div", { class: "split", role: "img", "aria-label": `${numbers.percent(share)} of accesses are reads` },
      dom.el("i", { class: "reads", style: `flex-grow:${share}` }), dom.el("i", { class: "writes", style: `flex-grow:${1 - share}` }));
    const first = tile(numbers.count(all), "accesses", `${numbers.count(totals.reads)} reads, ${numbers.count(totals.writes)} writes`);
    first.append(bar);
    return dom.el("div", { class: "tiles" },
      first,
      tile(numbers.bytes(totals.read_bytes + totals.write_bytes), "moved by accesses",
        `${numbers.bytes(totals.read_bytes)} read, ${numbers.bytes(totals.write_bytes)} written`),
      tile(numbers.bytes(totals.peak_live_bytes), "heap at its peak",
        `${numbers.bytes(totals.bytes)} allocated in all, ${numbers.bytes(totals.live_bytes)} live at the end`),
      tile(numbers.count(totals.allocs), "objects", `${numbers.count(totals.frees)} freed, ${numbers.count(totals.allocs - totals.frees)} live at the end`),
      tile(numbers.count(kernel), "accesses by the kernel", `${numbers.count(totals.kernel_reads)} reads, ${numbers.count(totals.kernel_writes)} writes`));
  }

  /** What a reader would find with some patience. */
  function findings({ run, sites, title, marks, accesses }) {
    const lines = [];
    const objects = run.curves.find((curve) => curve.by === "object");
    const [half, most] = [50, 90].map((share) => objects.marks.find((mark) => mark.share === share));
    if (half && half.bytes !== null) {
      const also = most.bytes === null ? "" : `, 90 % go to ${numbers.bytes(most.bytes)}`;
      lines.push(`Half of all accesses go to ${numbers.bytes(half.bytes)} in ${plural(half.count, "object")}${also}; all listed objects together take ${numbers.bytes(objects.bytes)}.`);
    }
    if (sites.id.length > 0 && accesses(sites, 0) > 0) {
      const all = run.totals.reads + run.totals.writes;
      lines.push(`The hottest site, ${title(0)}, takes ${numbers.percent(accesses(sites, 0) / Math.max(all, 1))} of the accesses with ${numbers.bytes(sites.peak[0])} at its peak.`);
    }
    for (const kind of ["never read", "never written", "never accessed"]) {
      const rows = sites.id.map((_, at) => at).filter((at) => sites.bytes[at] > 0 && marks(sites.reads[at], sites.writes[at], 0).includes(kind));
      const sum = rows.reduce((bytes, at) => bytes + sites.bytes[at], 0);
      const written = rows.reduce((count, at) => count + sites.writes[at], 0);
      const cost = kind === "never read" ? `, ${numbers.count(written)} writes for nothing` : "";
      if (rows.length > 0) lines.push(`${plural(rows.length, "site")} ${rows.length === 1 ? "is" : "are"} ${kind} (${numbers.bytes(sum)} allocated${cost}).`);
    }
    return lines;
  }

  function plural(count, word) {
    return `${numbers.count(count)} ${word}${count === 1 ? "" : "s"}`;
  }

  function list(title, lines, kind) {
    if (lines.length === 0) return null;
    return dom.el("div", { class: kind }, dom.el("h3", {}, title), dom.el("ul", {}, ...lines.map((line) => dom.el("li", {}, line))));
  }

  /** Processes to choose from. */
  function processes(data, current, choose) {
    const columns = [
      { title: "Process", text: true, first: "up", value: (at) => data.runs[at].notes.command,
        show: (at) => dom.el("button", { type: "button", class: "link", "aria-current": at === current ? "true" : null, onclick: () => choose(at) },
          `${data.runs[at].pid}  ${data.runs[at].notes.command}`) },
      { title: "Accesses", value: (at) => data.runs[at].totals.reads + data.runs[at].totals.writes,
        show: (at) => numbers.count(data.runs[at].totals.reads + data.runs[at].totals.writes) },
      { title: "Peak heap", value: (at) => data.runs[at].totals.peak_live_bytes, show: (at) => numbers.bytes(data.runs[at].totals.peak_live_bytes) },
      { title: "Run time", value: (at) => data.runs[at].elapsed_ns, show: (at) => numbers.duration(data.runs[at].elapsed_ns) },
    ];
    return table.build(columns, { caption: "processes", rows: data.runs.map((_, at) => at), sort: 1 }).element;
  }

  function draw(section, view, data, current, choose) {
    const { run } = view;
    const { notes } = run;
    section.replaceChildren(
      dom.el("h1", { id: "overview-title" }, notes.command || run.source),
      dom.facts([
        ["Ended", notes.ended], ["Watched", notes.watched], ["Overhead", notes.overhead], ["Machine", notes.machine],
        ["Started", run.start_unix_ms > 0 ? new Date(run.start_unix_ms).toISOString().replace("T", " ").slice(0, 19) + " UTC" : ""],
        ["Report", `${run.source}, process ${run.pid}`],
      ]),
      tiles(run),
      dom.el("div", { class: "columns" },
        list("At a glance", findings(view), "findings"),
        list("Keep in mind", notes.warnings, "warning"),
        list("Left out of this page", run.cut, "cut")),
      ...(data.runs.length > 1 ? [dom.el("h3", {}, "Processes on this page"), processes(data, current, choose)] : []));
  }

  return { draw };
})();
