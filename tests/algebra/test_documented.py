"""The table of docs/aggregates.md says what the registry holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from strategies import CALLS

from workbench.algebra import AGGREGATES, PARTIALS, Family

DOCUMENT = Path(__file__).parents[2] / "docs" / "aggregates.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines()
    if line.startswith("| `")
]


def names(cell: str) -> list[str]:
    return re.findall(r"`([\w*]+)`", cell)


def test_every_aggregate_and_alias_has_a_row() -> None:
    assert sorted(name for row in ROWS for name in names(row[0])) == sorted(AGGREGATES.builtin)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: names(row[0])[0])
def test_family_partials_and_inverse(row: list[str]) -> None:
    written = {pattern.replace("*", r"\w+") for pattern in names(row[2])}
    for name in names(row[0]):
        aggregate = AGGREGATES[name]
        assert aggregate.family == Family(row[1])
        used = set()
        for call in CALLS[aggregate.name]:
            kinds = {part.kind for part in aggregate.parts(call.operands)}
            assert all(any(re.fullmatch(pattern, kind) for pattern in written) for kind in kinds), kinds
            used |= {pattern for pattern in written if any(re.fullmatch(pattern, kind) for kind in kinds)}
        assert used == written or " or " in row[2]
    groups = [
        all(PARTIALS[kind.replace("*", flavour)].invert is not None for kind in names(row[2]))
        for flavour in ("int", "float")
    ]
    assert row[3] == {(True, True): "yes", (True, False): "integers", (False, False): ""}[groups[0], groups[1]]


def test_every_kind_is_used() -> None:
    calls = [call for each in CALLS.values() for call in each]
    used = {part.kind for call in calls for part in AGGREGATES[call.function].parts(call.operands)}
    fast = {PARTIALS[kind].fast for kind in used} - {None}
    assert fast == {"sum_fast"}
    assert used | fast == set(PARTIALS)
