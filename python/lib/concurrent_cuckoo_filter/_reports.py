"""The outcomes of calls that change a filter."""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from ._native import RefusedError

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Report:
    """The outcome of an insertion.

    >>> from concurrent_cuckoo_filter import CuckooFilter
    >>> CuckooFilter(1000).insert(["a", "b", "a", None], unique=True)
    Report(inserted=2, present=1, nulls=1, refused=0)
    """

    inserted: int
    """The number of stored keys."""
    present: int
    """The number of keys that were not stored because they were present, or were false positives."""
    nulls: int
    """The number of nulls, which are never stored."""
    refused: int
    """The number of keys that found no room."""
    stored: Any = field(repr=False)
    """A mask that is true for stored keys and null for nulls, of the type that `contains` returns. After `insert` with `unique=True`,
    the stored keys are the new ones, and the only ones that may be removed later. None in reports of `merge` and `build_part`."""
    refused_at: list[int] = field(repr=False)
    """The indices of the first million refused keys in the input."""


@dataclass(frozen=True, eq=False)
class RemoveReport:
    """The outcome of a removal.

    >>> from concurrent_cuckoo_filter import CuckooFilter
    >>> blocked = CuckooFilter(1000)
    >>> blocked.insert(["a"])
    Report(inserted=1, present=0, nulls=0, refused=0)
    >>> blocked.remove(["a", "b", None])
    RemoveReport(removed=1, missing=1, nulls=1)
    """

    removed: int
    """The number of removed copies."""
    missing: int
    """The number of keys that had no copy."""
    nulls: int
    """The number of nulls."""
    missing_at: list[int] = field(repr=False)
    """The indices of the first million missing keys in the input."""


def reported(outcome: dict[str, Any]) -> Report:
    """The report, or the exception that carries it if keys were refused."""
    report = _made(Report, outcome)
    if report.refused:
        keys = report.inserted + report.present + report.refused
        error = RefusedError(
            f"{report.refused} of {keys} keys were refused: the filter is full, or a key was stored 8 times already"
        )
        error.report = report
        raise error
    return report


def removed(outcome: dict[str, Any]) -> RemoveReport:
    return _made(RemoveReport, outcome)


def _made(report: type[T], outcome: dict[str, Any]) -> T:
    # The constructor of a frozen dataclass takes several times as long, which is much of a call with one key.
    made = object.__new__(report)
    vars(made).update(outcome)
    return made
