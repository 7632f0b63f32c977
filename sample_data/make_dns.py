"""Make the landing files of the example ``dns``: DNS answers of an hour in the form in which Zeek logs them, invented."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

__all__ = ["logs"]

FOLDER = Path(__file__).parent / "dns" / "landing" / "dns"
_BEGIN = datetime(2024, 5, 1, tzinfo=UTC)
_FILES, _MINUTES, _ROWS = 6, 10, 60
_FIELDS = (
    ("ts", "time"), ("uid", "string"), ("id.orig_h", "addr"), ("id.orig_p", "port"), ("id.resp_h", "addr"), ("id.resp_p", "port"),
    ("query", "string"), ("rcode_name", "string"), ("answers", "vector[string]"), ("TTLs", "vector[interval]"),
)
_NAMES = tuple(f"{host}.example.{end}" for host in ("www", "mail", "cdn", "api", "login", "news") for end in ("com", "org", "net"))
_TTLS = (30, 60, 300, 600, 1800, 3600)


def logs() -> dict[str, str]:
    """Return the logs by the name of their file; the same each time."""
    random = Random(7)
    files = {}
    for number in range(_FILES):
        begin = _BEGIN + timedelta(minutes=number * _MINUTES)
        moments = sorted(random.uniform(0, _MINUTES * 60) for _ in range(_ROWS))
        rows = ["\t".join(_row(random, begin.timestamp() + moment)) for moment in moments]
        end = begin + timedelta(minutes=_MINUTES)
        head = [
            "#separator \\x09", "#set_separator\t,", "#empty_field\t(empty)", "#unset_field\t-", "#path\tdns",
            f"#open\t{begin:%Y-%m-%d-%H-%M-%S}",
            "\t".join(["#fields", *(name for name, _ in _FIELDS)]),
            "\t".join(["#types", *(kind for _, kind in _FIELDS)]),
        ]
        files[f"dns.{end:%H-%M}.log"] = "\n".join([*head, *rows, f"#close\t{end:%Y-%m-%d-%H-%M-%S}"]) + "\n"
    return files


def _row(random: Random, moment: float) -> tuple[str, ...]:
    uid = "C" + "".join(random.choices("abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789", k=16))
    question = (f"10.0.0.{random.randint(2, 25)}", str(random.randint(32768, 60999)), "10.0.0.1", "53", random.choice(_NAMES))
    if random.random() < 0.05:
        return (f"{moment:.6f}", uid, *question, "NXDOMAIN", "-", "-")
    addresses = [f"203.0.113.{random.randint(1, 254)}" for _ in range(random.randint(1, 3))]
    ttls = [f"{random.choice(_TTLS)}.000000" for _ in addresses]
    return (f"{moment:.6f}", uid, *question, "NOERROR", ",".join(addresses), ",".join(ttls))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in logs().items():
        (FOLDER / name).write_text(text)
