"""Statistics of a comparison, and the Markdown that shows them.

A round measures the candidate and the reference once each, one after the other. A ratio is taken
within a round, so that both had the same conditions, and the median over the rounds is reported.
Other work that slows down a whole round therefore cancels out.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Figures = dict[str, float]
BEGIN = "<!-- compare:begin -->"
END = "<!-- compare:end -->"


@dataclass(frozen=True)
class Round:
    candidate: Figures
    reference: Figures


@dataclass(frozen=True)
class Comparison:
    """A figure of both runtimes. `ratio` is reference / candidate, above 1 if Tenon is better.
    `lowest` to `highest` is its range over the rounds, which shows the machine's noise."""

    candidate: float
    reference: float
    ratio: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Result:
    """One model at one number of threads.

    difference  the greatest difference between the outputs of the two, relative to the greatest
                magnitude in the output; None if there was nothing numeric to compare
    error       why there are no figures, or ""
    """

    case: str
    threads: int
    rounds: Sequence[Round] = ()
    difference: float | None = None
    error: str = ""


def compare(rounds: Sequence[Round], figure: str) -> Comparison:
    candidate = [each.candidate[figure] for each in rounds]
    reference = [each.reference[figure] for each in rounds]
    ratios = [theirs / ours for ours, theirs in zip(candidate, reference, strict=True)]
    return Comparison(
        statistics.median(candidate),
        statistics.median(reference),
        statistics.median(ratios),
        min(ratios),
        max(ratios),
    )


def geometric_mean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def three_digits(value: float) -> str:
    """'0.0123', '1.23', '12.3', '1234'."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def cell(comparison: Comparison) -> str:
    spread = f", {comparison.lowest:.2f}-{comparison.highest:.2f}"
    return (
        f"{three_digits(comparison.candidate)} / {three_digits(comparison.reference)} "
        f"(**{comparison.ratio:.2f}**{spread if comparison.lowest < comparison.highest else ''})"
    )


COLUMNS = {
    "create_ms": "create, ms",
    "first_ms": "first run, ms",
    "ready_ms": "both, ms",
    "steady_ms": "steady run, ms",
    "peak_mb": "peak memory, MB",
}


def table(results: Sequence[Result]) -> str:
    header = ["model", "threads", *COLUMNS.values(), "difference"]
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    for result in results:
        if result.error:
            cells = [result.error] + [""] * len(COLUMNS)
        else:
            cells = [cell(compare(result.rounds, figure)) for figure in COLUMNS]
            known = result.difference is not None
            cells.append(f"{result.difference:.0e}" if known else "not compared")
        lines.append("| " + " | ".join([result.case, str(result.threads), *cells]) + " |")
    return "\n".join(lines)


def summary(results: Sequence[Result]) -> list[str]:
    """Geometric means for every number of threads, import time and library size."""
    good = [result for result in results if not result.error]
    lines = []
    for threads in sorted({result.threads for result in good}):
        rows = [result for result in good if result.threads == threads]
        means = (
            f"{heading.split(',')[0]} "
            f"{geometric_mean(compare(row.rounds, figure).ratio for row in rows):.2f}"
            for figure, heading in COLUMNS.items()
        )
        lines.append(f"- Geometric mean of the ratios, {threads} thread(s): {', '.join(means)}.")
    if good:
        every_round = [each for result in good for each in result.rounds]
        lines.append(f"- Import after NumPy, ms: {cell(compare(every_round, 'import_ms'))}.")
        lines.append(f"- Libraries loaded, MB: {cell(compare(every_round, 'library_mb'))}.")
    return lines


def markdown(results: Sequence[Result], candidate: str, reference: str, machine: str) -> str:
    count = max((len(result.rounds) for result in results), default=0)
    introduction = (
        f"{candidate} / {reference} (**ratio**, above 1 where {candidate} is better, "
        f"and its range), medians over {count} round(s). Machine: {machine}."
    )
    return "\n\n".join([introduction, "\n".join(summary(results)), table(results)])


def replace_between_markers(document: str, text: str) -> str:
    """`document` with `text` between its markers. ValueError unless it has one pair."""
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in after:
        raise ValueError(f"expected {BEGIN} and {END}, once each")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"
