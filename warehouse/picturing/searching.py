"""The search field of the report: it hides the tables, and rows of tables, that have not all of the words.

It is there only where the browser runs the script; without it the page is whole, and the browser's own search finds
what is on it.
"""

from __future__ import annotations

__all__ = ["FIELD", "SCRIPT"]

FIELD = (
    '<p class="search" hidden><label>Search <input type="search" autocomplete="off" spellcheck="false"/></label> '
    "<output></output></p>"
)
"""The field, hidden until the script shows it; browsers read its output aloud when it changes."""
SCRIPT = """<script>
(() => {
  const bar = document.querySelector(".search"), field = bar.querySelector("input"), told = bar.querySelector("output");
  const rows = [...document.querySelectorAll('section[id^="all-"] tr')].filter((row) => row.querySelector("td"));
  const named = rows.filter((row) => row.querySelector('a[href^="#table-"]'));
  const parts = [...document.querySelectorAll('section[id^="table-"]')];
  const links = [...document.querySelectorAll(".contents li")].filter((each) => each.querySelector('a[href^="#table-"]'));
  const target = (part) => part.querySelector("a").getAttribute("href").slice(1);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(" ").filter(Boolean);
    const fits = (part) => words.every((word) => part.textContent.toLowerCase().includes(word));
    for (const row of rows) row.hidden = !fits(row);
    const found = new Set(named.filter((row) => !row.hidden).map(target));
    for (const part of parts) part.hidden = !found.has(part.id);
    for (const link of links) link.hidden = !found.has(target(link));
    told.textContent = words.length ? `${found.size} of ${named.length} tables` : "";
  });
  bar.hidden = false;
})();
</script>"""
"""Rows of the first table decide of which tables the sections and links are shown."""
