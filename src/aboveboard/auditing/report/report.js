// Three comforts; the page says the same without them: tables that sort, evidence that opens when a link leads to it,
// and everything unfolded on paper.
"use strict";
(() => {
  const value = (row, at) => {
    const cell = row.cells[at];
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    return cell.classList.contains("gone") || cell.textContent === "" ? null : cell.textContent;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });

  const sort = (table, header, at) => {
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row, place) => ({ row, place, value: value(row, at) }));
    rows.sort((a, b) => {
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null) || a.place - b.place;
      return (down ? compare(b.value, a.value) : compare(a.value, b.value)) || a.place - b.place;
    });
    body.append(...rows.map((entry) => entry.row));
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    if (table.tBodies[0].rows.length < 2) continue;
    Array.from(table.tHead.rows[0].cells).forEach((header, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sort(table, header, at));
    });
  }

  const unfold = (element) => {
    for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  const arrive = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target) {
      unfold(target);
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", arrive);
  arrive();

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = Array.from(document.querySelectorAll("details:not([open], .groups, .is-ok > *, .is-note > *)"));
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
    folded = [];
  });
})();
