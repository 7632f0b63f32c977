from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from tests.layout.theorem import (
    cv_chronological,
    cv_round_robin,
    published_chronological,
    published_round_robin,
    sampling_noise,
    variance_chronological,
    variance_ratio,
    variance_round_robin,
)
from warehouse.layout.oracle import expected_sizes, uniform_weights

from .strategies import plain

if TYPE_CHECKING:
    from warehouse.layout import Layout
    from warehouse.layout.oracle import Model


def enumerated(layout: Layout, model: Model) -> list[Fraction]:
    """The sum of squared deviations after each update of one period, from the size oracle."""
    weights = [
        2 if weight == 1 else 1 for weight in uniform_weights(layout.periods, model)
    ]  # in halves, exact and fast
    mean = Fraction(sum(expected_sizes(layout, 0, weights).values())) / layout.cells
    sums = []
    for k in range(1, layout.periods + 1):
        sizes = expected_sizes(layout, k, weights)
        sums.append(sum(((Fraction(size) - mean) ** 2 for size in sizes.values()), Fraction(0)) / 4)
    return sums


# Section 6, model W: n, p; chronological exact, published; round-robin exact, published, published with the sign fixed.
TABLE = [
    (4, 8, 52, 52, 12, 24, 16),
    (4, 18, 1140.75, 1140.75, 60.75, 121.5, 81),
    (9, 12, 232, 152, 32, 42.67, 37.33),
    (9, 27, 5562, 3402, 162, 216, 189),
    (16, 16, 540, 300, 60, 70, 66),
    (16, 36, 13263.75, 6783.75, 303.75, 354.38, 334.13),
    (25, 20, 976, 496, 96, 105.6, 102.4),
    (25, 45, 24246, 11286, 486, 534.6, 518.4),
]


@pytest.mark.parametrize("line", TABLE)
def test_table_of_whole_slots(line: tuple[float, ...]) -> None:
    """The corrected and the published forms give the table of section 6."""
    n, periods, chronological, printed_ch, round_robin, printed_rr, fixed_rr = line
    m, p = round(n**0.5), int(periods)
    assert variance_chronological(m, p, "W") == Fraction(chronological)
    assert variance_round_robin(m, p, "W") == Fraction(round_robin)
    assert float(published_chronological(m, p)) == pytest.approx(printed_ch)
    assert float(published_round_robin(m, p)) == pytest.approx(printed_rr, abs=0.006)
    assert float(published_round_robin(m, p, sign_fixed=True)) == pytest.approx(fixed_rr, abs=0.006)


@pytest.mark.parametrize("model", ["C", "W"])
@pytest.mark.parametrize(("m", "p"), [(2, 8), (2, 18), (3, 12), (4, 16), (4, 24), (5, 20)])
def test_corrected_forms_are_exact(m: int, p: int, model: Model) -> None:
    """Enumerating the cells gives the corrected forms: round-robin at every update, chronological on average."""
    assert enumerated(plain(m, m, "round-robin", p), model) == [variance_round_robin(m, p, model)] * p
    sums = enumerated(plain(m, m, "chronological", p), model)
    assert sum(sums) / p == variance_chronological(m, p, model)


@pytest.mark.parametrize("model", ["C", "W"])
@pytest.mark.parametrize("m", range(2, 8))
def test_the_theorem_holds(m: int, model: Model) -> None:
    """Chronological sub-indices vary more whenever a part has two slots or more, and equally at p = m (model W)."""
    for q in range(2, 9):
        ratio = variance_ratio(m, m * q, model)
        assert ratio == variance_chronological(m, m * q, model) / variance_round_robin(m, m * q, model)
        assert ratio - 1 == Fraction((3 * m - 4) * (q * q - 1), 3 * (m if model == "C" else m + 1))
    assert variance_ratio(m, m, "W") == 1


def test_published_forms() -> None:
    """The printed chronological form is right for n = 4 only (and at p = m), the printed round-robin form never."""
    assert all(published_chronological(2, p) == variance_chronological(2, p, "W") for p in range(4, 40, 2))
    assert published_chronological(3, 3) == variance_chronological(3, 3, "W")
    assert published_chronological(3, 12) != variance_chronological(3, 12, "W")
    assert all(
        published_round_robin(m, 4 * m, sign_fixed=fixed) != variance_round_robin(m, 4 * m, "W")
        for m in range(2, 8)
        for fixed in (False, True)
    )


@pytest.mark.parametrize(
    ("m", "round_robin", "chronological"),
    [(2, 0.039, 0.410), (3, 0.068, 0.610), (4, 0.096, 0.709), (6, 0.152, 0.808)],
)
def test_coefficients_of_variation(m: int, round_robin: float, chronological: float) -> None:
    """At p = 36 cell sizes vary by the coefficients of section 6."""
    assert cv_round_robin(m, 36) == pytest.approx(round_robin, abs=5e-4)
    assert cv_chronological(m, 36) == pytest.approx(chronological, abs=5e-4)
    mean = Fraction(36**2, 2 * m * m)
    assert cv_round_robin(m, 36) == pytest.approx(float(variance_round_robin(m, 36, "C") / m**2) ** 0.5 / float(mean))
    assert cv_chronological(m, 36) == pytest.approx(
        float(variance_chronological(m, 36, "C") / m**2) ** 0.5 / float(mean)
    )


@pytest.mark.parametrize(
    ("m", "p", "chronological", "round_robin"),
    [
        (2, 8, (48.1, 48), (8.03, 8)),
        (3, 12, (223.8, 224), (24.1, 24)),
        (4, 36, (13216, 13203), (253, 243)),
        (5, 20, (961, 960), (81.5, 80)),
    ],
)
def test_predictions_for_random_rows(
    m: int, p: int, chronological: tuple[float, float], round_robin: tuple[float, float]
) -> None:
    """Model C predicts the figures of random rows (section 6), up to sampling noise and, for chronological, a percent."""
    assert float(variance_chronological(m, p, "C")) == pytest.approx(chronological[1], abs=0.5)
    assert float(variance_round_robin(m, p, "C")) == round_robin[1]
    noise = float(sampling_noise(m, p, 4000))
    assert abs(round_robin[0] - round_robin[1]) <= 2 * noise
    assert chronological[0] == pytest.approx(chronological[1], rel=0.01)


def test_noise() -> None:
    """The noise of 4000 rows per update on a 4x4 grid at p = 36 is 5.5 (section 6)."""
    assert float(sampling_noise(4, 36, 4000)) == pytest.approx(5.5, abs=0.05)
