"""The papers' workloads: data, windows, contestants, ratios and pictures, without measuring."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks import paper_figures, pictures, power
from benchmarks.__main__ import main
from benchmarks.contestants import FUNCTIONS, contestants
from benchmarks.row_streams import BLOCKS
from benchmarks.workloads import WORKLOADS

FIGURES = {
    "a/SoE/1": 4.0,
    "a/SoE/8": 2.0,
    f"a/{BLOCKS}/8": 10.0,
    "a/SlickDeque/8": 5.0,
    "a/SlideSide/8": 4.0,
    "a_random/SoE/8": 99.0,
}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    power._readings.cache_clear()
    yield
    power._readings.cache_clear()


def test_readings_repeat_the_third_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINQUERY_DATA", str(tmp_path))
    with gzip.open(tmp_path / power.FILE, "wt") as file:
        file.write("2012-02-22\t1\t13056\t14406\n2012-02-22\t2\t13054\t14405\n")
    assert power.readings(5).tolist() == [13056, 13054, 13056, 13054, 13056]
    assert power.about() == {"data": "DEBS 2012 power readings"}


def test_without_the_file_the_output_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINQUERY_DATA", str(tmp_path))
    assert len(power.readings(20_000)) == 20_000
    assert "random" in power.about()["data"]


def test_windows() -> None:
    assert paper_figures.singles(64) == {1: [1], 4: [4], 16: [16], 64: [64]}
    found = paper_figures.several([1, 3], 100)
    assert found[3][:1] == found[1]
    assert all(1 <= size <= 100 for size in found[3])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_all_contestants_take_sizes_in_any_order(name: str) -> None:
    found = contestants(name, np.arange(10), [9, 2, 5])
    assert list(found)[-1] == BLOCKS
    assert all(entrant.partials >= 9 for entrant in found.values())


def test_ratios_compare_within_a_panel() -> None:
    assert paper_figures.compared(FIGURES, "a", 8) == {
        "a_blocks_by_best": 2.0,
        "a_slideside_by_slickdeque": 0.8,
    }


def test_curves_of_a_panel() -> None:
    assert pictures.curves(FIGURES, "a")["SoE"] == {"1": 4.0, "8": 2.0}
    assert pictures.curves(FIGURES, "b") == {}


def test_everyone_has_a_colour() -> None:
    assert {label for function in FUNCTIONS.values() for label in function.algorithms} < set(pictures.COLORS)


@pytest.mark.parametrize(("name", "panel"), [("slideside-fig3", "e"), ("lightsaber-fig15", "c")])
def test_pictures_come_from_a_file_of_results(name: str, panel: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    spent = {f"{panel}/sum SoE/{at}": place + 10.0 for place, at in enumerate(pictures.BOX)}
    results = tmp_path / "results.jsonl"
    line = '{"workload": "%s", "figure": "%s", "value": %s}\n'
    results.write_text("".join(line % (name, figure, value) for figure, value in (FIGURES | spent).items()))
    assert main(["figures", str(results), "--folder", str(tmp_path / "images")]) == 0
    [picture] = (tmp_path / "images").iterdir()
    assert picture.name == f"{name}.svg"
    assert ">SlideSide<" in picture.read_text()
    before = picture.read_bytes()
    main(["figures", str(results), "--folder", str(tmp_path / "images")])
    assert picture.read_bytes() == before


def test_a_file_without_figures_to_draw_is_an_error(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    results.write_text('{"workload": "first-picture", "figure": "cold_s", "value": 1}\n')
    assert main(["figures", str(results), "--folder", str(tmp_path)]) == 1


def test_headlines_are_figures_that_the_papers_workloads_give() -> None:
    for name, panels in (("slideside-fig3", "abcd"), ("lightsaber-fig15", "abde")):
        assert {headline.split("_")[0] for headline in WORKLOADS[name].headline} == set(panels)
