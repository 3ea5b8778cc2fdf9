// Ties the parts together: the choice of process, the theme, redrawing.
"use strict";

const main = (() => {
  function start() {
    const data = JSON.parse(document.getElementById("data").textContent);
    const asked = new URLSearchParams(window.location.search);
    let drawn = [];

    const select = document.getElementById("run");
    data.runs.forEach((run, at) => select.append(dom.el("option", { value: at }, `${run.pid} ${run.notes.command}`.slice(0, 60))));
    document.getElementById("run-choice").hidden = data.runs.length < 2;
    const choose = (at) => {
      select.value = at;
      show(at);
      document.getElementById("overview").scrollIntoView();
    };
    select.addEventListener("change", () => show(Number(select.value)));

    function show(at) {
      const view = model.open(data.runs[at]);
      document.title = `${view.run.notes.command || view.run.source} – Thermalloc`;
      const section = (id) => document.getElementById(id);
      const table = sites.draw(section("sites"), view);
      const jump = (id) => table.reveal(id);
      overview.draw(section("overview"), view, data, at, choose);
      drawn = [heatmap.draw(section("heatmap"), view, jump), flame.draw(section("flame"), view), curve.draw(section("placement"), view)];
      classes.draw(section("classes"), view);
      objects.draw(section("objects"), view, jump);
    }

    themes(asked.get("theme"), () => show(Number(select.value)));
    show(0);
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      // The address bar of a phone comes and goes: only a new width needs a new drawing.
      if (window.innerWidth === width) return;
      width = window.innerWidth;
      drawn.forEach((part) => part.paint());
    });
  }

  /** The theme: what was asked for in the address, else the system's, until the button is pressed. */
  function themes(asked, changed) {
    const button = document.getElementById("theme");
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    const label = () => {
      colour.forget();
      const dark = colour.theme() === "dark";
      button.textContent = dark ? "Light" : "Dark";
      button.setAttribute("aria-label", dark ? "Use the light theme" : "Use the dark theme");
      button.setAttribute("aria-pressed", String(dark));
    };
    if (asked === "dark" || asked === "light") document.documentElement.dataset.theme = asked;
    button.addEventListener("click", () => {
      document.documentElement.dataset.theme = colour.theme() === "dark" ? "light" : "dark";
      label();
      changed();
    });
    system.addEventListener("change", () => {
      label();
      changed();
    });
    label();
  }

  return { start };
})();
