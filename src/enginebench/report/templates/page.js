// The theme button and the sorting of tables: the page is whole without them.
(() => {
  "use strict";
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.getElementById("theme");
  const theme = () => root.dataset.theme ?? (prefersDark.matches ? "dark" : "light");
  const other = () => (theme() === "dark" ? "light" : "dark");

  function label() {
    button.textContent = other() === "dark" ? "Dark theme" : "Light theme";
  }
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = other();
    label();
    root.dispatchEvent(new Event("themechange"));
  });
  prefersDark.addEventListener("change", label);
  label();

  const shown = (row, at) => {
    const cell = row.cells[at];
    const number = cell.dataset.value ?? cell.dataset.key;
    if (number !== undefined) return Number(number);
    return cell.classList.contains("missing") ? null : cell.textContent.trim();
  };
  // What is missing comes last, whichever way the rest is sorted.
  function compared(a, b, sign) {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  }
  function sort(heading, at) {
    const table = heading.closest("table");
    const direction = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    table.querySelectorAll("[aria-sort]").forEach((one) => one.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => compared(shown(a, at), shown(b, at), sign));
    table.tBodies[0].append(...rows);
  }
  for (const heading of document.querySelectorAll("th[data-sort]")) {
    const press = document.createElement("button");
    press.type = "button";
    press.append(...heading.childNodes);
    press.addEventListener("click", () => sort(heading, Number(heading.dataset.sort)));
    heading.append(press);
  }
})();
