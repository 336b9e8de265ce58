"""The statistics and the text of bench/compare.py, and onnxruntime compared with itself."""

import build_models
import compare
import numpy as np
import pytest
import report
from report import BEGIN, END, Comparison, Result, Round


def rounds(figure: str, *pairs: tuple[float, float]) -> list[Round]:
    return [Round({figure: ours}, {figure: theirs}) for ours, theirs in pairs]


def test_ratio_is_taken_within_rounds():
    # The second round ran on a machine that was three times slower: it changes no ratio.
    measured = report.compare(rounds("x", (1, 2), (3, 6), (2, 4)), "x")
    assert measured == Comparison(candidate=2, reference=4, ratio=2, lowest=2, highest=2)


def test_ratio_is_above_one_where_the_candidate_is_better():
    assert report.compare(rounds("x", (1, 5)), "x").ratio == 5
    assert report.compare(rounds("x", (5, 1)), "x").ratio == pytest.approx(0.2)


def test_median_ignores_an_outlier():
    measured = report.compare(rounds("x", (1, 1), (1, 1), (1, 100)), "x")
    assert measured.ratio == 1
    assert report.cell(measured) == "1.00 / 1.00 (**1.00**, 1.00-100.00)"


def test_geometric_mean_balances_gains_and_losses():
    assert report.geometric_mean([4, 0.25]) == pytest.approx(1)
    assert report.geometric_mean([2, 8]) == pytest.approx(4)


@pytest.mark.parametrize(
    "value, text",
    [(0, "0"), (0.012345, "0.0123"), (1.2345, "1.23"), (12.345, "12.3"), (1234.5, "1234")],
)
def test_three_digits(value, text):
    assert report.three_digits(value) == text


DIFFERENCES = {
    "equal": ([1.0, 2.0], [1.0, 2.0], 0),
    "relative to the greatest": ([1.0, 9.0], [0.0, 10.0], 0.1),
    "all zero": ([0.5], [0.0], 0.5),
    "same NaN": ([np.nan, 1.0], [np.nan, 1.0], 0),
    "other NaN": ([np.nan, 1.0], [1.0, np.nan], np.inf),
    "other shape": ([1.0], [1.0, 2.0], np.inf),
}


@pytest.mark.parametrize("ours, theirs, expected", DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_relative_difference(ours, theirs, expected):
    found = compare.relative_difference(np.array(ours), np.array(theirs))
    assert found == pytest.approx(expected)


def test_table_has_a_row_for_every_result():
    figures = dict.fromkeys((*report.COLUMNS, "import_ms", "library_mb"), 2.0)
    measured = Result("bert", 1, [Round(figures, figures)], difference=1e-6)
    broken = Result("gpt2", 2, error="tenon: unknown operator")
    lines = report.table([measured, broken]).splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert "| bert | 1 | 2.00 / 2.00 (**1.00**)" in lines[2] and "1e-06" in lines[2]
    assert "tenon: unknown operator" in lines[3]
    assert "1 thread(s): create 1.00" in report.summary([measured, broken])[0]


def test_replace_between_markers_keeps_the_rest():
    document = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    replaced = report.replace_between_markers(document, "new")
    assert replaced == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert report.replace_between_markers(replaced, "new") == replaced


@pytest.mark.parametrize("document", ["", BEGIN, END + BEGIN, BEGIN + BEGIN + END])
def test_replace_between_markers_refuses_a_document_without_one_pair(document):
    with pytest.raises(ValueError, match="once each"):
        report.replace_between_markers(document, "new")


def test_the_documentation_has_its_markers():
    report.replace_between_markers(compare.DOCUMENT.read_text(), "new")


def test_onnxruntime_equals_itself(tmp_path):
    build_models.build_missing(tmp_path, ["mlp_tiny"])
    case = next(case for case in compare.GENERATED if case.name == "mlp_tiny")
    plan = compare.Plan("onnxruntime", "onnxruntime", rounds=1, seconds=0.01)
    result = compare.measure_case(case, tmp_path, 1, plan)
    assert result.error == "" and result.difference == 0
    figures = result.rounds[0].candidate
    assert figures["runs"] >= 5 and figures["library_mb"] > 1
    assert figures["steady_min_ms"] <= figures["steady_ms"]


def test_a_failing_worker_is_reported(tmp_path):
    (tmp_path / "mlp_tiny.onnx").write_bytes(b"no model")
    case = next(case for case in compare.GENERATED if case.name == "mlp_tiny")
    plan = compare.Plan("onnxruntime", "onnxruntime", rounds=1, seconds=0.01)
    assert compare.measure_case(case, tmp_path, 1, plan).error.startswith("onnxruntime: ")
