// A table with sortable columns, a filter and pages, which stays quick whatever the number of rows.
"use strict";

const table = (() => {
  const PAGE = 50;

  /**
   * `columns`: {title, hint, value(row), show(row), text, first}: `value` sorts, `show` gives text or an element, `text` marks
   * columns of words, `first` the order of the first click ("up" or, the default, "down").
   * `options`: {caption, rows, sort (column index), search(row), select(row, details), filters: [[name, test]], empty}.
   */
  function build(columns, options) {
    const state = { sort: options.sort || 0, down: columns[options.sort || 0].first !== "up", page: 0, search: "", filter: 0, open: null };
    const head = dom.el("tr", {});
    const body = dom.el("tbody", {});
    const status = dom.el("span", { class: "status", role: "status" });
    const back = dom.el("button", { type: "button", onclick: () => turn(-1) }, "Previous");
    const forth = dom.el("button", { type: "button", onclick: () => turn(1) }, "Next");
    let shown = [];

    columns.forEach((column, at) => {
      const press = () => {
        state.down = state.sort === at ? !state.down : column.first !== "up";
        state.sort = at;
        update();
      };
      const button = dom.el("button", { type: "button", title: column.hint || null, onclick: press }, column.title);
      head.append(dom.el("th", { scope: "col", class: column.text ? "text" : null }, button));
    });

    function update(keepPage) {
      if (!keepPage) state.page = 0;
      const test = options.filters ? options.filters[state.filter][1] : () => true;
      const words = state.search.toLowerCase();
      shown = options.rows.filter((row) => test(row) && (words === "" || options.search(row).toLowerCase().includes(words)));
      const { value } = columns[state.sort];
      const keys = new Map(shown.map((row) => [row, value(row)]));
      const sign = state.down ? -1 : 1;
      const order = (a, b) => (keys.get(a) < keys.get(b) ? -sign : keys.get(a) > keys.get(b) ? sign : 0);
      shown.sort(order);
      draw();
    }

    function draw() {
      [...head.children].forEach((cell, at) => {
        cell.setAttribute("aria-sort", at !== state.sort ? "none" : state.down ? "descending" : "ascending");
      });
      const start = state.page * PAGE;
      const rows = shown.slice(start, start + PAGE);
      body.replaceChildren(...rows.flatMap((row) => lines(row)));
      if (rows.length === 0) body.append(dom.el("tr", {}, dom.el("td", { colspan: columns.length, class: "text" }, options.empty || "Nothing to show.")));
      status.textContent = shown.length === 0 ? "" : `${start + 1} to ${start + rows.length} of ${numbers.count(shown.length)}`;
      back.disabled = state.page === 0;
      forth.disabled = start + PAGE >= shown.length;
    }

    function lines(row) {
      const open = state.open === row;
      const cells = columns.map((column) => dom.el("td", { class: column.text ? "text" : null }, column.show(row)));
      if (options.details) {
        const toggle = () => {
          state.open = open ? null : row;
          draw();
          body.querySelector("[data-focus]")?.focus();
        };
        const button = dom.el("button", { type: "button", class: "open", "aria-expanded": String(open),
          "aria-label": open ? "Hide details" : "Show details", onclick: toggle, "data-focus": open || state.last === row }, open ? "−" : "+");
        if (open) state.last = row;
        cells[0].prepend(button);
      }
      const line = dom.el("tr", { class: open ? "open" : null }, ...cells);
      return open ? [line, dom.el("tr", { class: "details" }, dom.el("td", { colspan: columns.length, class: "text" }, options.details(row)))] : [line];
    }

    function turn(by) {
      state.page += by;
      draw();
      element.scrollIntoView({ block: "nearest" });
    }

    /** Shows a row with its details, wherever it is. */
    function reveal(row) {
      if (state.search !== "" || state.filter !== 0) {
        state.search = "";
        state.filter = 0;
        input.value = "";
        element.querySelectorAll(".choice button").forEach((button, at) => button.setAttribute("aria-pressed", String(at === 0)));
        update();
      }
      state.open = row;
      state.page = Math.max(0, Math.floor(shown.indexOf(row) / PAGE));
      draw();
      body.querySelector("tr.open")?.scrollIntoView({ block: "center" });
      body.querySelector("[data-focus]")?.focus({ preventScroll: true });
    }

    const input = dom.el("input", { type: "search", placeholder: "Filter…", "aria-label": `Filter ${options.caption}`, autocomplete: "off" });
    input.addEventListener("input", () => {
      state.search = input.value;
      update();
    });
    const filters = options.filters
      ? dom.choice("Show", options.filters.map(([name], at) => [at, name]), 0, (at) => {
        state.filter = at;
        update();
      })
      : null;
    const grid = dom.el("table", {}, dom.el("caption", {}, options.caption), dom.el("thead", {}, head), body);
    const element = dom.el("div", { class: "table" },
      options.search ? dom.el("div", { class: "controls" }, input, filters) : null,
      dom.el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": options.caption }, grid),
      options.rows.length > PAGE ? dom.el("div", { class: "controls pages" }, back, forth, status) : null);
    update();
    return { element, reveal };
  }

  return { build };
})();
