// Building the document. Text goes in as text, never as markup.
"use strict";

const dom = (() => {
  const SVG = "http://www.w3.org/2000/svg";

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }

  /** An HTML element; attributes that begin with `on` are listeners; strings become text nodes. */
  function el(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }

  /** An SVG element. */
  function svg(tag, attributes, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
  }

  /** A section's heading with its explanation. */
  function heading(id, title, text) {
    const head = el("h2", { id: `${id}-title` }, title);
    return text ? [head, el("p", { class: "hint" }, text)] : [head];
  }

  /** A group of buttons of which one is pressed. `choices`: [value, label] pairs. */
  function choice(label, choices, current, change) {
    const group = el("span", { class: "choice", role: "group", "aria-label": label });
    for (const [value, text] of choices) {
      const press = () => {
        for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
        change(value);
      };
      const pressed = String(value === current);
      const button = el("button", { type: "button", "aria-pressed": pressed, onclick: press, "data-value": value }, text);
      group.append(button);
    }
    return group;
  }

  /** Lines of a tooltip at a place of the window. */
  function tip(lines, x, y) {
    const box = document.getElementById("tip");
    box.hidden = lines === null;
    if (lines === null) return;
    box.replaceChildren(...lines.map((line, at) => el(at === 0 ? "strong" : "div", {}, line)));
    const left = Math.min(x + 14, document.documentElement.clientWidth - box.offsetWidth - 8);
    const below = y + 16 + box.offsetHeight < window.innerHeight;
    box.style.left = `${Math.max(8, left)}px`;
    box.style.top = `${below ? y + 16 : Math.max(8, y - box.offsetHeight - 10)}px`;
  }

  /** Makes a canvas as sharp as the screen; returns its context in CSS pixels. */
  function sharpen(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.max(1, Math.round(height * ratio));
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
  }

  /** Text cut to a width, with an ellipsis. */
  function shorten(context, text, width) {
    if (context.measureText(text).width <= width) return text;
    let [low, high] = [0, text.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
      else high = middle - 1;
    }
    return low === 0 ? "" : `${text.slice(0, low)}…`;
  }

  /** A list of terms and descriptions. Pairs without description are left out. */
  function facts(pairs) {
    const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
    return el("dl", { class: "facts" }, ...shown.map(([term, value]) => el("div", {}, el("dt", {}, term), el("dd", {}, value))));
  }

  return { el, svg, heading, choice, tip, sharpen, shorten, facts };
})();
