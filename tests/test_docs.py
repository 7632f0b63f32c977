"""Documentation is complete: every command, configuration key, rejection reason and glossary word is where it should be."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import warehouse
from warehouse.cli.main import COMMANDS
from warehouse.ingest import classify
from warehouse.sample_data import __file__ as samples

ROOT = Path(__file__).parent.parent
DOCS = {path.name: path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
ALL = "\n".join(DOCS.values())


def test_every_command_is_documented() -> None:
    """Each command of the command line is named in the README or the docs."""
    missing = [name for name in COMMANDS if f"stream-wh {name}" not in ALL and f"`{name}`" not in ALL]
    assert missing == []


def test_every_configuration_key_is_documented() -> None:
    """Each key of the example file that shows all keys is in the table of keys."""
    text = (Path(samples).parent / "answers" / "warehouse.toml").read_text()
    keys = set(re.findall(r"^(?:# )?([a-z_]+) = ", text, flags=re.MULTILINE))
    columns = set(tomllib.loads(text)["streams"]["answers"]["columns"])
    missing = sorted(key for key in keys - columns if f"`{key}`" not in DOCS["configuration.md"])
    assert missing == []


def test_every_rejection_reason_is_documented() -> None:
    """Each reason code of a rejected row is in the table of reasons."""
    source = Path(classify.__file__).read_text()
    reasons = set(re.findall(r'^        "([a-z_]+)": f?["\']', source, flags=re.MULTILINE))
    reasons |= {"malformed", "mistyped", "expr_failed", "key_reused"}
    missing = sorted(reason for reason in reasons if f"`{reason}`" not in DOCS["operations.md"])
    assert missing == []
    assert len(reasons) >= 7


def test_links_between_pages_lead_somewhere() -> None:
    """Each relative link of the README and the docs names a file, and a heading of it where it names one."""
    broken = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)]+)\)", path.read_text()):
            name, _, heading = target.partition("#")
            file = path.parent / name if name else path
            if "://" not in target and not (file.exists() and (not heading or heading in _headings(file))):
                broken += [f"{path.name}: {target}"]
    assert broken == []


def _headings(page: Path) -> set[str]:
    """Return the names of a page's headings in links: small letters, hyphens between words, nothing else."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_modules_that_pages_name_exist() -> None:
    """Each module that a page or a reference in a docstring names is a file."""
    rooms = [path for path in (ROOT / "warehouse").iterdir() if path.is_dir()]
    sources = [file for room in [*rooms, ROOT / "benchmarks", ROOT / "tests", ROOT / "docs"] for file in room.rglob("*.py")]
    files = [f"/{file.relative_to(ROOT)}" for file in [*sources, *ROOT.glob("*/*.py")]]
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("[!.]*/*.md"), *(ROOT / "warehouse").glob("*/*.md")]
    missing = []
    for page in pages:
        named = re.findall(r"`((?:[\w-]+/)*\w+\.py)`", page.read_text())
        missing_names = [name for name in named if "NAME" not in name and not any(file.endswith(f"/{name}") for file in files)]
        missing += [f"{page.name}: {name}" for name in missing_names]
    for source in (ROOT / "warehouse").glob("*/*.py"):
        for name in re.findall(r":mod:`(warehouse[\w.]*)`", source.read_text()):
            path = ROOT / name.replace(".", "/")
            if not (path.is_dir() or path.with_suffix(".py").exists()):
                missing += [f"{source.name}: {name}"]
    assert missing == []


def test_every_folder_has_its_paragraph() -> None:
    """Each folder of the library is in the README's table of folders."""
    folders = [path.name for path in (ROOT / "warehouse").iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    assert [name for name in folders if f"\n| `{name}/` |" not in DOCS["README.md"]] == []


def _modules() -> list[str]:
    return [module.name for module in pkgutil.walk_packages(warehouse.__path__, "warehouse.")]


@pytest.mark.parametrize("name", _modules())
def test_docstring_examples_hold(name: str) -> None:
    """The examples in a module's docstrings give what they show."""
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", [name for name in _modules() if not name.endswith("testing")])
def test_public_modules_say_what_they_export(name: str) -> None:
    """A module that defines public names lists them in ``__all__``, and each of them exists."""
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", None)
    own = [
        key
        for key, value in vars(module).items()
        if not key.startswith("_") and getattr(value, "__module__", None) == name and callable(value)
    ]
    assert exported is not None or not own
    assert [key for key in exported or () if not hasattr(module, key)] == []
