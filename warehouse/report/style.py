"""The style sheet of the report: for a light browser, a dark one, and paper.

The colours of series are those of Okabe and Ito, which people with every kind of colour vision can distinguish
(https://jfly.uni-koeln.de/color/, with a violet in place of their yellow, which is too faint on paper); live is blue and
dead is vermilion. A line separates shapes that touch.
"""

from __future__ import annotations

from warehouse.report.charts import COLOURS

__all__ = ["STYLE"]

_LIGHT = """--paper: #fff; --ink: #1d2429; --faint: #56616a; --line: #d5dbe0; --cell: #f3f5f7; --link: #0a5c99;
  --live: #0072b2; --dead: #d55e00; --c0: #0072b2; --c1: #e69f00; --c2: #009e73; --c3: #cc79a7; --c4: #56b4e9; --c5: #d55e00;
  --c6: #6a51a3; --c7: #9aa5ad;"""
_DARK = """--paper: #14181b; --ink: #e9eef1; --faint: #a3b0b9; --line: #38424a; --cell: #1e252a; --link: #7cc0ee;
  --live: #2f8fd0; --dead: #e8762a; --c0: #3b96d6; --c1: #e9a91e; --c2: #1fae85; --c3: #d58fb5; --c4: #7cc8f2; --c5: #e8762a;
  --c6: #9a86d6; --c7: #7c8891;"""
_COLOURS = "\n".join(
    f".c{number} {{ fill: var(--c{number}); }} .line.c{number} {{ stroke: var(--c{number}); }}" for number in range(COLOURS)
)
STYLE = f"""
:root {{ color-scheme: light dark; {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
@media print {{ :root {{ color-scheme: light; {_LIGHT} }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 1.5rem auto; max-width: 100rem; padding: 0 1.2rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }}
h1, h2 {{ overflow-wrap: anywhere; }}
h1 {{ font-size: 1.5rem; margin-bottom: 0; }} h2 {{ font-size: 1.25rem; margin: 2.4rem 0 .2rem; }}
h3 {{ font-size: 1rem; margin: 0 0 .1rem; }} a {{ color: var(--link); }} svg a {{ text-decoration: none; }}
p {{ max-width: 60rem; margin: .3rem 0; }} p.note, .legend, figcaption {{ color: var(--faint); font-size: .9rem; }}
.failed {{ color: var(--dead); font-weight: 600; overflow-wrap: anywhere; }}
.figures {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1.4rem 2rem;
  align-items: start; }}
figure {{ margin: .9rem 0 0; min-width: 0; }} figure svg {{ width: 100%; height: auto; display: block; }}
.legend {{ margin: .2rem 0; }} .legend svg {{ display: inline; width: 12px; height: 12px; }}
.legend span {{ margin-right: 1rem; display: inline-block; overflow-wrap: anywhere; }}
.wide {{ overflow-x: auto; }} table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .4rem 0; }}
th, td {{ text-align: right; padding: .2rem 0 .2rem 1.1rem; border-bottom: 1px solid var(--line); white-space: nowrap; }}
th:first-child, td:first-child {{ padding-left: 0; }} td.text, th.text {{ text-align: left; }}
figure td.text {{ white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }}
text {{ fill: var(--ink); font: 13px system-ui, sans-serif; }} text.axis {{ fill: var(--faint); }}
text.name {{ font-weight: 600; }} a text.name {{ fill: var(--link); }}
.cell {{ fill: var(--cell); stroke: var(--line); }} .live {{ fill: var(--live); }} .dead {{ fill: var(--dead); }}
.bar {{ stroke: var(--paper); stroke-width: .7; }} .grid {{ stroke: var(--line); }} .ink {{ fill: var(--faint); }}
.edge {{ fill: none; stroke: var(--faint); stroke-width: 1.2; }} .line {{ fill: none !important; stroke-width: 1.8; }}
.box {{ fill: var(--cell); stroke: var(--faint); }} .box.view {{ stroke-dasharray: 5 3; }}
.box.failed {{ stroke: var(--dead); stroke-width: 2; }}
.verdict {{ border-left: .4rem solid var(--c2); padding: .3rem 1rem; margin: .9rem 0; background: var(--cell); }}
.verdict.attention {{ border-color: var(--c1); }} .verdict.broken {{ border-color: var(--dead); }}
.verdict ul {{ margin: .3rem 0; padding-left: 1.2rem; }} .verdict li {{ overflow-wrap: anywhere; max-width: 60rem; }}
.verdict li.broken b {{ color: var(--dead); }}
.contents {{ list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; padding: 0; margin: .8rem 0; }}
.contents li {{ min-width: 0; overflow-wrap: anywhere; }}
.search input {{ font: inherit; width: min(20rem, 60vw); padding: .2rem .4rem; color: inherit; background: var(--cell);
  border: 1px solid var(--faint); }} .search output {{ color: var(--faint); margin-left: .6rem; }}
[hidden] {{ display: none !important; }}
nav h2 {{ font-size: 1rem; margin: 1.2rem 0 0; }} nav .contents {{ margin-top: .2rem; }}
@media screen and (max-width: 40rem) {{
  body {{ margin: .8rem auto; padding: 0 .9rem; }} h1 {{ font-size: 1.25rem; }} .contents a {{ line-height: 1.8; }}
  .stacked, .stacked tbody {{ display: block; }} .stacked tr:first-child {{ display: none; }}
  .stacked tr {{ display: grid; grid-template-columns: 1fr 1fr; column-gap: 1.4rem; padding: .5rem 0;
    border-bottom: 1px solid var(--line); }}
  .stacked td {{ display: flex; flex-wrap: wrap; justify-content: space-between; column-gap: .5rem; padding: .1rem 0;
    border: 0; white-space: normal; overflow-wrap: anywhere; min-width: 0; }}
  .stacked.short tr {{ grid-template-columns: 1fr; }} .stacked td.text {{ grid-column: 1 / -1; min-width: 0; }}
  .stacked td:first-child {{ font-weight: 600; }}
  .stacked td:not(:first-child)::before {{ content: attr(data-head); color: var(--faint); }} }}
{_COLOURS}
@media print {{ nav {{ display: none; }} }}
@media print {{
  @page {{ margin: 12mm; }} body {{ margin: 0; max-width: none; font-size: 11pt; padding: 0; }} a {{ color: inherit; }}
  * {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }} .wide {{ overflow: visible; }}
  figure, tr {{ break-inside: avoid; }} h2, h3, .note {{ break-after: avoid; }} .figures {{ gap: .8rem 1.4rem; }}
  .figures {{ grid-template-columns: 1fr 1fr; }} svg {{ max-width: 100% !important; min-width: 0 !important; }} }}
"""
