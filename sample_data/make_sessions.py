"""Make the landing files of the example ``sessions``: who was logged in on a morning, as a site's statistics export it, invented."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

__all__ = ["exports"]

FOLDER = Path(__file__).parent / "sessions" / "landing" / "sessions"
_BEGIN = datetime(2024, 5, 1, 8, tzinfo=UTC)
_FILES, _ROWS = 6, 40
_HEADER = "Session ID;User;Device type;Start (UTC);End (UTC);Pages"
_DEVICES = ("desktop", "phone", "phone", "tablet")


def exports() -> dict[str, str]:
    """Return the exports by the name of their file, which is the end of their hour; the same each time."""
    random = Random(11)
    files = {}
    for number in range(_FILES):
        begin = _BEGIN + timedelta(hours=number)
        starts = sorted(random.randint(1, 3600) for _ in range(_ROWS))
        rows = [
            _row(random, number * _ROWS + position, begin + timedelta(seconds=start)) for position, start in enumerate(starts)
        ]
        files[f"{begin + timedelta(hours=1):%Y-%m-%dT%H}.csv"] = "\n".join([_HEADER, *rows]) + "\n"
    return files


def _row(random: Random, number: int, start: datetime) -> str:
    seconds = 30 + int(random.expovariate(1 / 1500)) % 14_000
    end = "" if random.random() < 0.08 else f"{start + timedelta(seconds=seconds):%d.%m.%Y %H:%M:%S}"
    user, device = f"user-{random.randint(0, 39):02}", random.choice(_DEVICES)
    return f"{48_000 + number:x};{user};{device};{start:%d.%m.%Y %H:%M:%S};{end};{1 + seconds // 90}"


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in exports().items():
        (FOLDER / name).write_text(text)
