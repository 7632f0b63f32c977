"""How Sphinx makes the site: `python -m docs` (README.md). Pages are Markdown; parts of the reference come from the code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from docs.building.generated import written  # noqa: E402 - the line above lets it be found
from docs.building.keys import joined  # noqa: E402 - same
from docs.building.links import within_the_site  # noqa: E402 - same

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "stream-wh"
copyright = "the authors of stream-wh, Apache-2.0"  # noqa: A001 - Sphinx's name
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["building", "figures"]
html_theme = "furo"
html_title = "stream-wh"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_theme_options: dict[str, list[str]] = {"top_of_page_buttons": []}
myst_heading_anchors = 3
pygments_style = "friendly"
napoleon_google_docstring = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
smartquotes = False


def setup(app: Sphinx) -> None:
    """Make the generated pages before Sphinx looks for sources; join tables of keys with the models, keep links in the site."""
    app.connect("builder-inited", lambda _: written(HERE / "generated"))
    app.connect("source-read", _page)


def _page(_: Sphinx, name: str, source: list[str]) -> None:
    source[0] = within_the_site(joined(source[0]) if name == "configuration" else source[0])
