"""Where each fault that users of comparable systems met is tested: windows and time (T), order (O), sessions (S),
quantiles and ties (Q), and errors of the language (E).

A place is a test (``file::name``), or a text in a file of goldens (``file: text``).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
_OWN = "runtime/test_cases.py::test_"
_WINDOWS = "runtime/test_window_cases.py::test_"
_AGGREGATES = "runtime/test_aggregates.py::test_"
_GOLDENS = "language/goldens/"

CASES = {
    "T1 rows of one time": [f"{_OWN}t1_rows_of_one_time_are_seen_together", "runtime/test_ties.py::test_by_hand"],
    "T2 units of times": [
        f"{_OWN}t2_whatever_unit_times_come_in",
        f"{_OWN}t2_frames_whatever_unit_times_come_in",
        "feeds/test_recording.py::test_every_unit_and_zone_becomes_microseconds_in_utc",
    ],
    "T3 bounds": [f"{_OWN}t2_t3_the_unit_and_the_bounds"],
    "T4 before 1970": [
        f"{_OWN}t4_before_1970",
        "kernels/test_two_stacks.py::test_slices_before_1970_round_down",
    ],
    "T5 aligned to the epoch": [f"{_WINDOWS}t5_weeks_of_windows_begin_on_thursdays_and_of_calendars_on_mondays"],
    "T6 days where the clock changes": [f"{_WINDOWS}t6_days_where_the_clock_changes"],
    "T7 days without rows": [
        "runtime/test_filling.py::test_t7_a_key_is_filled_from_its_first_window_to_the_latest_event_time",
        "runtime/test_filling.py::test_t7_without_filling_they_are_not_there",
    ],
    "T8 nanoseconds": [
        f"{_OWN}t8_t9_times_that_lose_digits_or_do_not_fit_are_errors_with_column_and_value",
        "feeds/test_recording.py::test_nanoseconds_are_never_cut_off_silently",
        "feeds/test_folder.py::test_nanoseconds_are_refused_before_they_count",
        "language/test_evaluate.py::test_nanoseconds_are_not_cut_off",
        "spark/test_runner.py::test_nanoseconds_that_do_not_fit_are_refused",
    ],
    "T9 dates that do not fit": [
        f"{_OWN}t8_t9_times_that_lose_digits_or_do_not_fit_are_errors_with_column_and_value",
        f"{_OWN}t9_a_year_behind_9999_is_a_time_like_any_other",
    ],
    "O1 silence": [
        f"{_WINDOWS}o1_the_last_window_closes_with_the_stream",
        f"{_WINDOWS}o1_time_goes_on_while_a_stream_is_idle",
        "spark/test_fused.py::test_o1_a_silent_stream_goes_on_with_the_clock_after_the_time_out",
        "spark/test_streaming.py::test_silence_keeps_the_last_windows_open_until_the_stream_is_finished",
        "spark/test_runner.py::test_stop_with_finish_closes_all_windows",
    ],
    "O2 a filter that drops every row": [
        f"{_OWN}o2_rows_that_a_filter_drops_still_move_time",
        "spark/test_streaming.py::test_a_filter_that_drops_every_row_still_moves_the_time",
    ],
    "O3 one silent part": [f"{_WINDOWS}o3_a_silent_task_does_not_block_the_others"],
    "O4 results at once": [f"{_WINDOWS}o4_final_in_the_micro_batch_whose_watermark_passes_the_end"],
    "O5 a row at the previous maximum": [f"{_OWN}o5_a_row_at_the_previous_maximum_is_kept"],
    "O6 late rows of sessions": [f"{_WINDOWS}o6_late_rows_of_sessions_are_counted"],
    "O7 two sizes": [f"{_WINDOWS}o7_two_sizes_in_one_stream_out_of_order"],
    "O8 a changed query on an old checkpoint": [
        "spark/test_changes.py::test_another_plan_on_an_old_checkpoint_is_a_change",
        "spark/test_checkpoint.py::test_what_goes_on_is_told_by_query_and_level",
        "spark/test_cells_restart.py::test_a_cell_that_was_changed_and_one_that_is_new",
    ],
    "O9 order of arrival": [
        f"{_OWN}o9_order_of_arrival_never_changes_a_final_result",
        "runtime/test_oracle.py::test_all_window_types_mixed_equal_the_oracle",
    ],
    "O10 a slide that does not divide the size": [
        f"{_WINDOWS}o10_a_slide_that_does_not_divide_the_size",
        "plan/test_slicing.py::test_ends_are_edges_when_the_slide_does_not_divide_the_size",
    ],
    "O11 options that do not apply": [
        f"{_GOLDENS}windows.test: error: FILL needs windows that are there without rows, a window `session",
        f"{_GOLDENS}windows.test: error: `session_window` takes the time column and a gap",
        "spark/test_frames.py::test_what_no_source_can_be_made_of",
        "notebook/test_magics.py::test_options_are_read_as_they_are_meant",
    ],
    "S1 a row at the end of a session": [f"{_WINDOWS}s1_a_row_at_the_end_of_a_session"],
    "S2 order of equal rows": [f"{_WINDOWS}s2_the_order_of_rows_does_not_change_sessions"],
    "S3 a late row joins two": [f"{_WINDOWS}s3_a_late_row_joins_two_sessions_and_both_results_are_withdrawn"],
    "Q1 median and quantile": [f"{_AGGREGATES}q1_median_is_the_middle_quantile"],
    "Q2 no value": [f"{_AGGREGATES}q2_a_quantile_of_no_value_is_null"],
    "Q3 equal times": [f"{_AGGREGATES}q3_first_and_last_of_equal_times", "runtime/test_ties.py::test_by_hand"],
    "E1 unknown names": [
        f"{_GOLDENS}columns.test: error: unknown column `dep_dleay` in `flights`",
        f"{_GOLDENS}statements.test: error: unknown function `coutn`",
        f"{_GOLDENS}windows.test: error: unknown function `sesion_window`",
        f"{_GOLDENS}sources.test: hint: did you mean",
        "notebook/test_magics.py::test_a_users_mistake_shows_no_traceback",
        "browser/test_cells.py::test_mistakes_help_and_completion",
    ],
    "E2 aggregates and windows out of place": [
        f"{_GOLDENS}windows.test: error: the window form `window` cannot be used in WHERE",
        f"{_GOLDENS}aggregates.test: error: the aggregate `max` cannot be used in the argument of an aggregate",
        f"{_GOLDENS}columns.test: error: unknown column `m` in `flights`\n"
        "   1 | SELECT count(*) AS n FROM flights GROUP BY window(ts, '1 hour') HAVING m > 1",
        f"{_GOLDENS}windows.test: error: a query has one window form",
        f"{_GOLDENS}groups.test: error: `gate` is neither a key nor inside an aggregate",
    ],
    "E3 signs that mean nothing": [
        f'{_GOLDENS}statements.test: where  origin <> \'{{"a":1, "b": {{"c": -1}}}}\'',
        "notebook/test_magics.py::test_options_are_read_as_they_are_meant",
        "notebook/test_magics.py::test_parameters",
    ],
    "E4 nothing starts": [
        "notebook/test_magics.py::test_one_wrong_statement_starts_nothing",
        f"{_GOLDENS}statements.test: error: the query is empty",
    ],
    "bad sizes, measures and zones": [
        f"{_GOLDENS}windows.test: error: the window size must be positive, got `-1 minute`",
        f"{_GOLDENS}windows.test: error: the gap of a session must be positive, got `0 seconds`",
        f"{_GOLDENS}windows.test: error: `1.0000001 seconds` is not a whole number of microseconds",
        f"{_GOLDENS}windows.test: error: `window` needs a timestamp, but `origin` is `string`",
        f"{_GOLDENS}windows.test: error: there is no time zone `Europe/Berln`",
        "session/test_session.py::test_rows_that_go_back_are_told",
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_the_places_of_a_case_are_there(case: str) -> None:
    for place in CASES[case]:
        if "::" in place:
            file, name = place.split("::")
            assert re.search(rf"^def {name}\w*\(", (TESTS / file).read_text(), re.MULTILINE), place
        else:
            file, text = place.split(": ", 1)
            assert text in (TESTS / file).read_text(), place
