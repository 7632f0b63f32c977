from __future__ import annotations

from warehouse import errors


def test_one_base_and_stable_codes() -> None:
    """Every error has the one base, a code of its own, and a documented exit code."""
    public = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    kinds = [kind for kind in public if issubclass(kind, errors.WarehouseError)]
    assert kinds == public
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert {kind.exit_code for kind in kinds} <= {1, 2, 3, 4}


def test_only_transient_errors_are_worth_retrying() -> None:
    """Exit code 3 and the transient type say the same."""
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.WarehouseError):
            assert issubclass(kind, errors.Transient) is (kind.exit_code == 3)


def test_problems_are_lines() -> None:
    """A problem reads as one line; several are counted."""
    problem = errors.Problem("warehouse.toml", "streams.a.format", '"cvs"', '"csv" | "json"', "csv")
    assert (
        str(problem) == 'warehouse.toml: streams.a.format: found "cvs"; allowed: "csv" | "json" (did you mean "csv"?)'
    )
    assert "1 configuration error;" in str(errors.ConfigurationError([problem]))
    assert "2 configuration errors;" in str(errors.ConfigurationError([problem, problem]))
