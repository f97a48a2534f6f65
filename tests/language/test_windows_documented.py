"""The examples of docs/windows.md run as they stand, and give what was worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

TEXT = (Path(__file__).parents[2] / "docs" / "windows.md").read_text(encoding="utf-8")
CELLS = re.findall(r"```(?:python|sql)\n(.*?)```", TEXT, re.DOTALL)


def test_the_examples_run(shell: InteractiveShell) -> None:
    for cell in CELLS:
        assert shell.run_cell(cell).success, cell

    def rows(name: str, *columns: str) -> list[list[object]]:
        frame = shell.user_ns[name].results()
        frame["begin"] = frame.window_start.dt.strftime("%H:%M")
        frame["end"] = frame.window_end.dt.strftime("%H:%M")
        found: list[list[object]] = frame.sort_values(["begin", "end"])[[*columns]].to_numpy().tolist()
        return found

    assert rows("by_shift", "begin", "end", "n") == [["06:00", "14:00", 7], ["22:00", "06:00", 1]]
    assert rows("legs", "car", "begin", "n", "far") == [
        ["a", "05:30", 2, 4.5], ["b", "06:30", 2, 70.5], ["a", "07:00", 3, 13.5], ["b", "09:00", 1, 81.5],
    ]  # fmt: skip
    assert rows("legs_2", "car", "begin", "end", "n") == [
        ["a", "05:30", "06:45", 2], ["b", "06:30", "07:15", 1], ["a", "07:00", "07:45", 1],
        ["b", "07:30", "08:15", 1], ["a", "08:00", "09:15", 2], ["b", "09:00", "09:45", 1],
    ]  # fmt: skip
    assert rows("stops", "car", "begin", "n", "driven") == [
        ["b", "06:30", 2, 0.4000000000000057],
        ["a", "07:00", 3, 1.5],
    ]
