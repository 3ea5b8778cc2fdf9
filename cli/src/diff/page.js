"use strict";
const body = document.querySelector("#sites tbody"), heads = [...document.querySelectorAll("#sites th")];
const boxes = [...document.querySelectorAll("#filters [type=checkbox]")], search = document.querySelector("#search");

function filter() {
  const kinds = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  const words = search.value.toLowerCase();
  for (const row of body.rows) {
    row.hidden = !kinds.has(row.className) || !row.lastElementChild.textContent.toLowerCase().includes(words);
  }
}

function sort(column) {
  const descending = heads[column].getAttribute("aria-sort") !== "descending";
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
  const key = (row) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  const rows = [...body.rows].sort((a, b) => (key(a) < key(b) ? 1 : key(a) > key(b) ? -1 : 0));
  body.append(...(descending ? rows : rows.reverse()));
}

heads.forEach((head, column) => {
  head.tabIndex = 0;
  head.addEventListener("click", () => sort(column));
  head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(column); });
});
document.querySelector("#filters").addEventListener("input", filter);
document.querySelector("#filters").addEventListener("submit", (event) => event.preventDefault());
filter();
