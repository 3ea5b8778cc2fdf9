// Numbers as people read them, and the page's compact number format.
"use strict";

const numbers = (() => {
  const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
  const DIGIT = new Map([...DIGITS].map((digit, value) => [digit, value]));

  /** Two characters a number: its binary logarithm in steps of 1/32 from 2^-40 on; 0 is 0. */
  function decode(text) {
    const values = new Float64Array(text.length / 2);
    for (let at = 0; at < values.length; at++) {
      const level = DIGIT.get(text[2 * at]) * 64 + DIGIT.get(text[2 * at + 1]);
      values[at] = level === 0 ? 0 : 2 ** (level / 32 - 40);
    }
    return values;
  }

  /** Three significant digits. */
  function digits(value) {
    if (value >= 99.95) return value.toFixed(0);
    return value.toFixed(value >= 9.995 ? 1 : 2);
  }

  function scaled(value, step, suffixes) {
    let at = 0;
    while (value >= 999.5 && at < suffixes.length - 1) {
      value /= step;
      at += 1;
    }
    return digits(value) + suffixes[at];
  }

  /** A count, such as 9,999 or 12.3 M. */
  function count(value) {
    if (value < 10000) return Math.round(value).toLocaleString("en");
    return scaled(value, 1000, ["", " k", " M", " G", " T", " P", " E"]);
  }

  /** A size, such as 4096 B or 1.50 MiB. */
  function bytes(value) {
    if (value < 10000) return `${Math.round(value)} B`;
    return scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"]);
  }

  /** A round size, without decimals. */
  function roundBytes(value) {
    if (value >= 1024 && value < 10240) return `${Number((value / 1024).toFixed(1))} KiB`;
    return bytes(value).replace(/\.0+(?= )/, "");
  }

  /** A time in ns. */
  function duration(ns) {
    if (ns === 0) return "0 s";
    if (ns < 1e3) return `${Math.round(ns)} ns`;
    if (ns < 1e6) return `${digits(ns / 1e3)} µs`;
    if (ns < 1e9) return `${digits(ns / 1e6)} ms`;
    if (ns < 100e9) return `${digits(ns / 1e9)} s`;
    if (ns < 7200e9) return `${Math.floor(ns / 60e9)} min ${Math.floor((ns / 1e9) % 60)} s`;
    return `${digits(ns / 3600e9)} h`;
  }

  /** Any rate or ratio. */
  function rate(value) {
    if (value === 0) return "0";
    if (value < 0.995) return String(Number(value.toPrecision(2)));
    return value < 10000 ? digits(value) : scaled(value, 1000, ["", " k", " M", " G", " T", " P", " E"]);
  }

  /** A share of 1. */
  function percent(share) {
    if (share > 0 && share < 0.001) return "<0.1 %";
    if (share < 1 && share >= 0.9995) return ">99.9 %";
    return `${(share * 100).toFixed(share < 0.0995 || share > 0.985 ? 1 : 0).replace(/\.0$/, "")} %`;
  }

  /** More than 63 threads are not told apart. */
  function threads(value) {
    return value >= 64 ? "64+" : String(value);
  }

  /** Round numbers that divide 0 to `end` into about `parts`; of bytes, powers of two. */
  function ticks(end, parts, ofBytes) {
    const raw = end / parts;
    const power = 10 ** Math.floor(Math.log10(raw));
    const decimal = () => [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw) || raw;
    const step = ofBytes ? 2 ** Math.max(0, Math.ceil(Math.log2(raw))) : decimal();
    const list = [];
    for (let value = 0; value <= end * 1.0001 && list.length < 50; value += step) list.push(value);
    return list;
  }

  return { decode, count, bytes, roundBytes, duration, rate, percent, threads, ticks };
})();
