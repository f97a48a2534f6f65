"""TiLT's applications (*TiLT* Table 2, §7) as programs of signals, in process, beside pandas and ourselves unfused.

2 M rows of one series a millisecond apart (so TiLT's windows hold thousands of rows), random values, a tenth of
them missing where the application is about that:

- ``trend``: moving averages over 20 s and 50 s, their difference where the first is above;
- ``rsi``: relative strength over 14 s, from means of the gains and losses between neighbours;
- ``normalize``: mean and deviation of each 10 s, every value by them;
- ``impute``: missing values filled with the mean of their 10 s;
- ``resample``: a straight line between rows, read every 1.3 ms;
- ``vibration``: kurtosis, root mean square and crest factor of each 100 ms;
- ``fraud``: values above mean and three deviations of the last 10 s.

Figures: ``APP_m_s`` M rows/s with two threads, ``APP_one_m_s`` with one; ``APP_x_pandas`` times pandas, one thread on
both sides, where pandas has it; ``APP_x_unfused`` times the same expressions computed one after the other, each a
program of its own whose results are columns of the next. Clock: processor time for the ratios, wall time for rates.
Before that the results of ours and of pandas are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks import peers
from benchmarks.timing import interleaved, rate, speedup
from benchmarks.workload import Bar, Figures, Workload

Array = npt.NDArray[Any]
Frame = pd.DataFrame

ROWS, QUICK_ROWS, ROUNDS, QUICK_ROUNDS = 2_000_000, 100_000, 5, 1


@dataclass(frozen=True)
class App:
    """An application: its program, and the same in pandas, or in steps."""

    make: Callable[[], Any]
    missing: bool = False
    pandas: Callable[[Frame], Any] | None = None
    steps: Callable[[Frame], Any] | None = None


def _price() -> Any:
    from workbench import signal

    return signal("x")


def _signals(**options: Any) -> Any:
    from workbench import signals

    return signals(**options)


def _trend() -> Any:
    fast, slow = _price().window("20 s").mean(), _price().window("50 s").mean()
    return _signals(out=(fast - slow).where(fast > slow))


def _trend_steps(frame: Frame) -> Any:
    columns = {}
    for name, width in (("fast", "20 s"), ("slow", "50 s")):
        columns[name] = _signals(out=_price().window(width).mean()).run(frame, time="ts", threads=1)["out"]
    step = frame.assign(**columns)
    from workbench import signal

    step["difference"] = _signals(out=signal("fast") - signal("slow")).run(step, time="ts", threads=1)["out"]
    return _signals(out=signal("difference").where(signal("difference") > 0)).run(step, time="ts", threads=1)


def _trend_pandas(frame: Frame) -> Any:
    series = frame.set_index("ts")["x"]
    difference = series.rolling("20s").mean() - series.rolling("50s").mean()
    return difference.where(difference > 0).to_numpy()


def _rsi() -> Any:
    change = _price() - _price().previous()
    gain, loss = change.greatest(0).window("14 s").mean(), (-change).greatest(0).window("14 s").mean()
    return _signals(out=100 - 100 / (1 + gain / loss))


def _rsi_pandas(frame: Frame) -> Any:
    series = frame.set_index("ts")["x"]
    change = series.diff()
    gain, loss = change.clip(lower=0).rolling("14s").mean(), (-change).clip(lower=0).rolling("14s").mean()
    return (100 - 100 / (1 + gain / loss)).to_numpy()


def _normalize() -> Any:
    window = _price().tumbling("10 s")
    return _signals(out=(_price() - window.mean()) / window.std())


def _normalize_pandas(frame: Frame) -> Any:
    groups = frame.groupby(frame["ts"].dt.floor("10s"))["x"]
    return ((frame["x"] - groups.transform("mean")) / groups.transform("std")).to_numpy()


def _normalize_steps(frame: Frame) -> Any:
    from workbench import signal

    step = frame.copy()
    for name in ("mean", "std"):
        step[name] = _signals(out=getattr(_price().tumbling("10 s"), name)()).run(frame, time="ts", threads=1)["out"]
    step["off"] = _signals(out=signal("x") - signal("mean")).run(step, time="ts", threads=1)["out"]
    return _signals(out=signal("off") / signal("std")).run(step, time="ts", threads=1)


def _impute() -> Any:
    return _signals(out=_price().fill(_price().tumbling("10 s").mean()))


def _impute_pandas(frame: Frame) -> Any:
    groups = frame.groupby(frame["ts"].dt.floor("10s"))["x"]
    return frame["x"].fillna(groups.transform("mean")).to_numpy()


def _resample() -> Any:
    return _signals(out=_price().interpolate(), every="1300 us")


def _vibration() -> Any:
    window = _price().tumbling("100 ms")
    peak = _price().abs().tumbling("100 ms").max()
    return _signals(out=window.kurtosis(), rms=window.rms(), crest=peak / window.rms())


def _fraud() -> Any:
    window = _price().window("10 s")
    return _signals(out=_price().where(_price() > window.mean() + 3 * window.std()))


def _fraud_pandas(frame: Frame) -> Any:
    rolled = frame.set_index("ts")["x"].rolling("10s")
    return frame["x"].where(frame["x"].to_numpy() > (rolled.mean() + 3 * rolled.std()).to_numpy()).to_numpy()


APPS = {
    "trend": App(_trend, pandas=_trend_pandas, steps=_trend_steps),
    "rsi": App(_rsi, pandas=_rsi_pandas),
    "normalize": App(_normalize, pandas=_normalize_pandas, steps=_normalize_steps),
    "impute": App(_impute, missing=True, pandas=_impute_pandas),
    "resample": App(_resample),
    "vibration": App(_vibration),
    "fraud": App(_fraud, pandas=_fraud_pandas),
}


def frame(rows: int, missing: bool) -> Frame:
    """One series, a row a millisecond."""
    random = np.random.default_rng(31)
    values = random.normal(size=rows)
    if missing:
        values[random.random(rows) < 0.1] = np.nan
    return pd.DataFrame({"ts": pd.to_datetime(np.arange(rows) * 1000, unit="us"), "x": values})


def run(quick: bool) -> Figures:
    """Measure each application, all its sides in turn."""
    figures: dict[str, float] = {}
    rows, rounds = (QUICK_ROWS, QUICK_ROUNDS) if quick else (ROWS, ROUNDS)
    for name, app in APPS.items():
        data, made = frame(rows, app.missing), app.make()
        cases: dict[str, Callable[[], Any]] = {"ours": partial(made.run, data, time="ts", threads=1)}
        if app.pandas:
            cases["pandas"] = partial(app.pandas, data)
        if app.steps:
            cases["unfused"] = partial(app.steps, data)
        times = interleaved(cases, rounds)
        for case in cases:
            if case != "ours":
                figures[f"{name}_x_{case}"] = speedup(times, "ours", case)
        for threads, suffix in ((2, "_m_s"), (1, "_one_m_s")):
            figures[name + suffix] = rate(rows, [_timed(made, data, threads) for _ in range(rounds)]) / 1e6
    return figures


def _timed(made: Any, data: Frame, threads: int) -> float:
    begin = time.perf_counter()
    made.run(data, time="ts", threads=threads)
    return time.perf_counter() - begin


def warm_up(quick: bool) -> None:
    """Compile every program, and compare it with pandas."""
    for name, app in APPS.items():
        data = frame(50_000, app.missing)
        found = app.make().run(data, time="ts")["out"].to_numpy()
        for other in (app.pandas, app.steps):
            if other:
                theirs = other(data)
                theirs = theirs["out"].to_numpy() if isinstance(theirs, pd.DataFrame) else theirs
                near = np.isclose(found, theirs, rtol=1e-6, atol=1e-9, equal_nan=True)
                if near.mean() < 0.999:  # a comparison that rounding decides may differ
                    raise peers.Mismatch(f"{name}: {int((~near).sum())} of {len(near)} values differ")


WORKLOAD = Workload(
    name="signals",
    summary="TiLT's applications as fused programs of signals: M rows/s, times pandas and times unfused",
    group="kernels",
    run=run,
    warm_up=warm_up,
    bars=tuple(Bar(f"{name}_x_unfused", ">=", 1) for name, app in APPS.items() if app.steps),
    repeats=1,
)
