// Colours: two sequential scales whose lightness is monotone, so that they survive colour blindness and grey printing. On light
// ground hotter is darker, on dark ground hotter is lighter.
"use strict";

const colour = (() => {
  const SCALES = {
    light: ["#fff1cc", "#fdd488", "#f8a65c", "#ea6f57", "#c74168", "#8e2a73", "#551c66", "#270f45"],
    dark: ["#35205f", "#68237a", "#9c2f76", "#cd4a63", "#ec7548", "#f8a840", "#fbda72", "#fffbd2"],
  };
  const STEPS = 256;
  const tables = {};

  function channels(hex) {
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  }

  function table(theme) {
    if (!tables[theme]) {
      const stops = SCALES[theme].map(channels);
      tables[theme] = Array.from({ length: STEPS }, (_, step) => {
        const place = (step / (STEPS - 1)) * (stops.length - 1);
        const at = Math.min(Math.floor(place), stops.length - 2);
        const mixed = stops[at].map((from, channel) => Math.round(from + (stops[at + 1][channel] - from) * (place - at)));
        return `rgb(${mixed.join(",")})`;
      });
    }
    return tables[theme];
  }

  // Both are asked for each cell of a map, so they are kept until the theme changes.
  let current = null;
  const variables = new Map();

  /** To be called when the theme has changed. */
  function forget() {
    current = null;
    variables.clear();
  }

  /** `light` or `dark`, as it is shown now. */
  function theme() {
    const system = () => (window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    current ??= document.documentElement.dataset.theme || system();
    return current;
  }

  /** The colour at a place from 0 to 1 of the scale. */
  function at(place) {
    return table(theme())[Math.max(0, Math.min(STEPS - 1, Math.round(place * (STEPS - 1))))];
  }

  /** Whether text on that place of the scale should be dark. */
  function wantsDarkText(place) {
    return theme() === "light" ? place < 0.45 : place > 0.55;
  }

  /** The value of a variable of the style sheet. */
  function named(name) {
    if (!variables.has(name)) variables.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
    return variables.get(name);
  }

  /** A logarithmic scale over positive values; no more than seven decades, the rest shares the lowest colour. */
  function scale(values) {
    let [low, high] = [Infinity, 0];
    for (const value of values) {
      if (value > 0 && value < low) low = value;
      if (value > high) high = value;
    }
    if (high === 0) [low, high] = [1, 1];
    low = Math.max(low, high / 1e7);
    const span = Math.log(high / low);
    const place = (value) => (span === 0 ? 1 : Math.max(0, Math.min(1, Math.log(value / low) / span)));
    return { low, high, place };
  }

  /** A bar with the scale's colours and its powers of ten. */
  function legend(scaleOf, unit) {
    const stops = SCALES[theme()].join(", ");
    const decades = [];
    const [first, last] = [Math.ceil(Math.log10(scaleOf.low) - 1e-9), Math.floor(Math.log10(scaleOf.high) + 1e-9)];
    const step = Math.max(1, Math.ceil((last - first + 1) / 5));
    for (let power = first; power <= last; power += step) decades.push(10 ** power);
    if (decades.length === 0 || scaleOf.high === scaleOf.low) decades.splice(0, decades.length, scaleOf.high);
    const marks = decades.map((value) =>
      dom.el("span", { class: "tick", style: `left:${scaleOf.place(value) * 100}%` }, numbers.rate(value)));
    const bar = dom.el("span", { class: "ramp" }, ...marks);
    bar.style.backgroundImage = `linear-gradient(to right, ${stops})`;
    const none = dom.el("span", { class: "none" }, dom.el("i", {}), "none");
    return dom.el("div", { class: "legend" }, none, bar, dom.el("span", { class: "unit" }, unit));
  }

  return { forget, theme, at, wantsDarkText, named, scale, legend };
})();
