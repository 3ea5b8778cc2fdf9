// One run's data with what the views ask of it.
"use strict";

const model = (() => {
  const UNKNOWN = { name: "(unknown call stack)", place: "" };

  function open(run) {
    const { sites, objects, names } = run;
    const bySite = new Map(sites.id.map((id, at) => [id, at]));
    const watchesReads = run.config.access !== "w";

    /** Name and place of a site by its row. */
    const label = (at) => (sites.label[at] === null ? UNKNOWN : names[sites.label[at]]);
    /** Who called that function, nearest first. */
    const callers = (at) => {
      const stack = sites.stack[at];
      return stack.slice(stack.indexOf(sites.label[at]) + 1).map((name) => names[name].name);
    };
    const known = (name) => !/\+0x[0-9a-f]+$/.test(name) && !name.startsWith("0x");
    // For each function that names several sites: how many, and how often each caller stands above it.
    const sharing = new Map();
    sites.label.forEach((name, at) => {
      const group = sharing.get(name) || { sites: 0, above: new Map() };
      group.sites += 1;
      for (const caller of new Set(callers(at))) group.above.set(caller, (group.above.get(caller) || 0) + 1);
      sharing.set(name, group);
    });
    /** A name in one line, told apart from others. */
    function title(at) {
      const above = apart(at);
      return above === undefined ? label(at).name : `${label(at).name} ← ${above}`;
    }
    /** The nearest caller that tells a site apart, where several have the same name. */
    function apart(at) {
      const { name } = label(at);
      const group = sharing.get(sites.label[at]);
      const telling = (caller) => known(caller) && caller !== name && group.above.get(caller) * 2 <= group.sites;
      return group.sites > 1 ? callers(at).find(telling) || callers(at).find(known) : undefined;
    }
    /** Name and place of a site by its id, which the page need not list. */
    const labelOf = (id) => (bySite.has(id) ? label(bySite.get(id)) : { name: `site ${id}`, place: "(not on this page)" });
    const titleOf = (id) => (bySite.has(id) ? title(bySite.get(id)) : `site ${id}`);

    /** What is remarkable about reads and writes of a site or object. */
    function marks(reads, writes, threads) {
      const list = [];
      if (reads === 0 && writes === 0 && watchesReads) list.push("never accessed");
      else if (reads === 0 && watchesReads) list.push("never read");
      else if (writes === 0) list.push("never written");
      if (threads > 1) list.push(`shared by ${numbers.threads(threads)}`);
      return list;
    }

    const accesses = (rows, at) => rows.reads[at] + rows.writes[at];
    return { run, sites, objects, names, bySite, label, labelOf, callers, apart, title, titleOf, marks, accesses };
  }

  return { open };
})();
