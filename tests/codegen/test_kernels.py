"""The compiled variants agree with the array code, and are compiled once per machine."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from cells import readable

from workbench.algebra import PARTIALS
from workbench.codegen import FoldKernel, Lanes, Runs, modules
from workbench.codegen.source import Feed, fold_source
from workbench.kernels import combine

RNG = np.random.default_rng(7)
ROWS, GROUPS = 5_000, 40

#: Every kind over a float column with NaN and inf or an integer column at its limits, NULLs in both.
COLUMN = {"float64": 0, "int64": 1, "object": 2}
FEEDS = [
    Feed("count"),
    Feed("count", (0, 2)),
    *(Feed(name, tuple(COLUMN[kind] for kind in PARTIALS[name].inputs) or (0,)) for name in sorted(PARTIALS)),
]


def inputs() -> list[tuple[np.ndarray, np.ndarray]]:
    floats = RNG.normal(size=ROWS)
    floats[RNG.integers(0, ROWS, 3)] = [np.nan, np.inf, -np.inf]
    integers = RNG.integers(-(2**63), 2**63 - 1, ROWS)
    texts = RNG.choice(np.array(["", "a", "b", "ab"], object), ROWS)
    columns = [(floats, RNG.random(ROWS) < 0.9), (integers, RNG.random(ROWS) < 0.9), (texts, RNG.random(ROWS) < 0.9)]
    for values, valid in columns:  # as level 1 fills what is NULL
        values[~valid] = "" if values.dtype == object else 0
    return columns


def test_fold_variants_agree() -> None:
    group, columns = RNG.integers(0, GROUPS - 1, ROWS), inputs()
    kernel = FoldKernel(FEEDS)
    generic = kernel(group, GROUPS, columns, compiled=False)
    compiled = kernel(group, GROUPS, columns, compiled=True)
    for feed, left, right in zip(FEEDS, generic, compiled, strict=True):
        for one, other in zip(left, right, strict=True):
            assert one.dtype == other.dtype
            if one.dtype == object:
                assert list(map(readable, one)) == list(map(readable, other)), feed.kind
            elif feed.monoid.exact:
                np.testing.assert_array_equal(one, other, err_msg=feed.kind)
            else:
                np.testing.assert_allclose(one, other, rtol=1e-7, err_msg=feed.kind)
        for field, blank in zip(left, feed.monoid.blank(1), strict=True):
            np.testing.assert_array_equal(field[-1:], blank, err_msg="a group without rows is the identity")


def test_equal_shapes_have_equal_text_and_no_text_of_a_user() -> None:
    assert fold_source(FEEDS) == fold_source(list(FEEDS))
    assert [part.name for part in FoldKernel(FEEDS)._parts] == [part.name for part in FoldKernel(list(FEEDS))._parts]


def test_a_thousand_partials_are_a_few_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """One function of all of them: numba took minutes for a hundred sums, and ended in a RecursionError at 400."""
    feeds = [Feed("count"), *(feed for i in range(500) for feed in (Feed("sum_int", (i,)), Feed("count", (i,))))]
    kernel = FoldKernel(feeds)
    assert len({part.name for part in kernel._parts}) == 3  # the first, all others, the last
    monkeypatch.setattr("workbench.codegen.kernels._MOST", 2)
    kernel = FoldKernel(feeds[:12])
    assert len(kernel._parts) == 6
    group, columns = np.array([0, 1, 0]), [(np.array([i, 2, 10 * i]), None) for i in range(6)]
    columns[3] = columns[3][0], np.array([True, False, True])
    partials = kernel(group, 2, columns, compiled=True)
    generic = kernel(group, 2, columns, compiled=False)
    low = [fields[0].tolist() for fields in partials[1::2]]
    assert [fields[0].tolist() for fields in partials[::2]] == [[2, 1], [2, 1], [2, 1], [2, 1], [2, 0], [2, 1]]
    assert low == [[11 * i, 0 if i == 3 else 2] for i in range(6)]
    for one, other in zip(partials, generic, strict=True):
        assert [field.tolist() for field in one] == [field.tolist() for field in other]
    mixed = [feed.monoid.blank(2) for feed in kernel.feeds]
    kernel.into(mixed, group, columns, (kernel.ready(3, compiled=True)[0], None, *kernel.ready(3, compiled=True)[2:]))
    assert [[field.tolist() for field in fields] for fields in mixed] == [
        [field.tolist() for field in fields] for fields in generic
    ]


PROGRAM = textwrap.dedent(
    """
    import sys
    import numpy as np
    from workbench.cache import cache_folder
    from workbench.codegen import FoldKernel
    from workbench.codegen.source import Feed
    kernel = FoldKernel([Feed("count")])
    group = np.array([0, 0, 1])
    print(kernel(group, 2, [], compiled=True)[0][0].tolist(), cache_folder('kernels') is not None)
    """
)

#: Every function that a compiled kernel may call, those of the C library included, and one that makes arrays.
EVERY_KIND = textwrap.dedent(
    """
    import sys
    import numpy as np
    from workbench.algebra import PARTIALS
    from workbench.codegen import AssembleKernel, FoldKernel, Scans
    from workbench.codegen.source import Feed
    kinds = [name for name in sorted(PARTIALS) if PARTIALS[name].compiled]
    column = {"float64": 0, "int64": 1}
    kernel = FoldKernel([Feed(name, tuple(column[kind] for kind in PARTIALS[name].inputs)) for name in kinds])
    columns = [(np.array([0.5, -3.0, 7.25]), None), (np.array([2**62, -5, 2**62]), None)]
    partials = kernel(np.array([0, 1, 0]), 2, columns, compiled=True)
    sliced = AssembleKernel("product")
    leaves = tuple(field[:, None] for field in partials[kinds.index("product")])
    bounds = np.array([0, 1])
    windows = sliced(np.array([0]), np.array([2]), bounds, leaves, Scans(), keys=1, end=2, compiled=True)
    print([[field.tolist() for field in fields] for fields in [*partials, windows]])
    print("registered" if "numba.cpython.setobj" in sys.modules else "not registered")
    """
)


def run_program(home: Path, program: str = PROGRAM) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "", "HOME": str(home), "XDG_CACHE_HOME": str(home), "PYTHONPATH": ":".join(sys.path)},
    )
    return done.stdout.strip()


@pytest.mark.timeout(300)
def test_a_second_process_finds_the_machine_code(tmp_path: Path) -> None:
    folder = tmp_path / "winquery" / "kernels"
    assert run_program(tmp_path) == "[2, 1] True"
    compiled = {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb?")}
    assert compiled
    assert run_program(tmp_path) == "[2, 1] True"
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.nb?")} == compiled
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.timeout(300)
def test_machine_code_from_disk_needs_no_compiler(tmp_path: Path) -> None:
    """numba's registry of its own types, which takes as long as all kernels together, stays unread."""
    compiled, first = run_program(tmp_path, EVERY_KIND).splitlines()
    assert first == "registered"
    assert run_program(tmp_path, EVERY_KIND).splitlines() == [compiled, "not registered"]


def test_without_a_writable_cache_the_kernel_is_compiled_in_memory(tmp_path: Path) -> None:
    """Case R8: an executor whose home does not exist."""
    nowhere = tmp_path / "file"
    nowhere.write_text("not a folder")
    assert run_program(nowhere) == "[2, 1] False"


def test_rows_in_runs_fold_as_rows_by_themselves() -> None:
    """The kernel for runs, both variants, also in parts and with an empty run."""
    group = np.array([3, 0, 5, 3, 7])
    bounds = np.array([0, 1_000, 1_000, 3_500, 4_000, ROWS])
    runs, columns = Runs(group, bounds), inputs()
    expected = FoldKernel(FEEDS)(runs.expanded(), GROUPS, columns, compiled=False)
    kernel = FoldKernel(FEEDS, Runs)
    whole = kernel(runs, GROUPS, columns, compiled=True)
    parts = [feed.monoid.blank(GROUPS) for feed in FEEDS]
    for a, b in ((0, 2), (2, 5)):
        low, high = bounds[a], bounds[b]
        some = [(values[low:high], valid[low:high]) for values, valid in columns]
        kernel.into(parts, Runs(group[a:b], bounds[a : b + 1] - low), some, kernel.ready(ROWS, compiled=a == 2))
    for feed, *found in zip(FEEDS, expected, whole, parts, strict=True):
        for one, other, third in zip(*found, strict=True):
            if one.dtype == object:
                # Sketches that are full depend on how rows were grouped, and on chance.
                cells = [list(map(readable, field)) for field in (one, other, third)]
                assert not feed.monoid.exact or cells[0] == cells[1] == cells[2], feed.kind
            else:
                np.testing.assert_allclose(other, one, rtol=1e-6, err_msg=feed.kind)
                np.testing.assert_allclose(third, one, rtol=1e-6, err_msg=feed.kind)


def test_rows_in_lanes_fold_as_rows_by_themselves() -> None:
    """The kernel for lanes, both variants, every kind that it may be used for: cells as counted by hand."""
    feeds = [feed for feed in FEEDS if feed.monoid.compiled and feed.monoid.exact and feed.monoid.commutative]
    group, columns = RNG.integers(0, GROUPS, ROWS).astype(np.int32), inputs()
    cells = np.array([4 * int(g) + i % 4 for i, g in enumerate(group)])
    assert Lanes(group).expanded().tolist() == cells.tolist()
    expected, kernel = FoldKernel(feeds)(cells, 4 * GROUPS, columns, compiled=False), FoldKernel(feeds, Lanes)
    for compiled in (False, True):
        found = kernel(Lanes(group), 4 * GROUPS, columns, compiled=compiled)
        for feed, left, right in zip(feeds, expected, found, strict=True):
            for one, other in zip(left, right, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=feed.kind)


def test_arrays_of_any_origin_are_one_type_to_the_compiler() -> None:
    kernel = FoldKernel([Feed("count"), Feed("sum_float", (0,))])
    rows = np.arange(20, dtype=np.float64)
    (function,) = kernel.ready(20, compiled=True)
    assert function is not None
    for values in (rows, pa.array(rows).to_numpy(), np.repeat(rows, 2)[::2]):
        for valid in (None, np.ones(20, np.bool_), np.ones(40, np.bool_)[::2]):
            for group in (np.zeros(20, np.int64), pa.array(np.zeros(20, np.int64)).to_numpy()):
                outputs = [feed.monoid.blank(1) for feed in kernel.feeds]
                kernel.into(outputs, group, [(values, valid)], (function,))
                assert [field[0] for fields in outputs for field in fields] == [20, 190.0]
    assert len(function.signatures) == 1  # type: ignore[attr-defined]


def test_machine_code_depends_on_all_that_it_may_call() -> None:
    """A generated text stays as it is where a function that it calls changes: the name of its code must not."""
    told = modules._surroundings()
    files = list(Path(combine.__file__).parent.glob("*.py"))
    assert {"combine.py", "frames.py", "peers.py", "scan.py"} <= {path.name for path in files}
    assert all(path.read_text() in told for path in files)
