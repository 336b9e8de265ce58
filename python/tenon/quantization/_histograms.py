"""Histograms, and ranges that leave out rare numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._arithmetic import smooth_distribution
from ._calibration_data import TensorData

FEWEST_BINS = 512  # the fewest numbers for a mean and a deviation


@dataclass
class Histogram:
    """Counts in bins, and the least and the greatest number."""

    counts: np.ndarray
    edges: np.ndarray  # one more than counts
    lowest: np.ndarray
    highest: np.ndarray
    reach: Any = 0.0  # the bins of signed numbers go from -reach to reach

    def clipped(self, low: Any, high: Any) -> TensorData:
        """Clips a range to the numbers that were seen."""
        kind = self.edges.dtype
        return TensorData(
            lowest=np.asarray(max(low, self.lowest), kind),
            highest=np.asarray(min(high, self.highest), kind),
            hist=self.counts,
            bins=self.edges,
        )


def _ends(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not numbers.size:
        return np.zeros((), numbers.dtype), np.zeros((), numbers.dtype)
    return np.asarray(np.nanmin(numbers)), np.asarray(np.nanmax(numbers))


def count_signed(numbers: np.ndarray, bins: int, known: Histogram | None) -> Histogram:
    """Bins of equal width around zero. If numbers lie outside, bins are added."""
    low, high = _ends(numbers)
    reach = np.maximum(np.abs(low), np.abs(high))
    old = np.zeros(bins, np.int64) if known is None else known.counts
    more = 0
    if known is not None:
        low, high = np.minimum(low, known.lowest), np.maximum(high, known.highest)
        if reach <= known.reach:
            reach = known.reach
        elif known.reach > 0:
            width = 2 * known.reach / old.size
            more = int((reach - known.reach) // width + 1)
            reach = more * width + known.reach
    counts, edges = np.histogram(numbers, old.size + 2 * more, range=(-reach, reach))
    counts[more : counts.size - more] += old
    return Histogram(counts, edges, low, high, reach)


def count_distances(numbers: np.ndarray, bins: int, known: Histogram | None) -> Histogram:
    """Bins of absolute values. If numbers lie outside, bins are added."""
    low, high = _ends(numbers)
    distances = np.abs(numbers)
    if known is None:
        counts, edges = np.histogram(distances, bins=bins)
        return Histogram(counts, edges.astype(numbers.dtype), low, high)
    edges, farthest = known.edges, np.nanmax(distances, initial=0)
    if farthest > edges[-1]:
        width = edges[1] - edges[0]
        edges = np.hstack((edges, np.arange(edges[-1] + width, farthest + width, width)))
    counts, _ = np.histogram(distances, bins=edges)
    counts[: known.counts.size] += known.counts
    low, high = np.minimum(low, known.lowest), np.maximum(high, known.highest)
    return Histogram(counts, edges.astype(numbers.dtype), low, high)


def percentile_range(histogram: Histogram, percentile: float, symmetric: bool) -> TensorData:
    """Leaves out a share of the numbers, half of it on either side."""
    if not 0 <= percentile <= 100:
        raise ValueError(
            f"Invalid percentile. Must be in range 0 <= percentile <= 100, got {percentile}"
        )
    edges = histogram.edges
    below = np.cumsum(histogram.counts / histogram.counts.sum())
    if symmetric:  # the bins are of absolute values
        far = edges[np.searchsorted(below, percentile / 100)]
        return histogram.clipped(-far, far)
    cut = (100 - percentile) / 200
    left, right = np.searchsorted(below, cut), np.searchsorted(below, 1 - cut)
    return histogram.clipped(edges[left], edges[right])


def entropy_range(histogram: Histogram, quantized_bins: int) -> TensorData:
    """Keeps most of the distribution: the least Kullback-Leibler divergence."""
    counts, edges = histogram.counts, histogram.edges
    middle = counts.size // 2
    best, least = (edges[0], edges[-1]), np.inf
    for reach in range(quantized_bins // 2, middle + 1):
        begin, end = middle - reach, min(middle + reach + 1, counts.size)
        divergence = _divergence(counts, begin, end, quantized_bins)
        if divergence < least:
            least, best = divergence, (edges[begin], edges[end])
    return histogram.clipped(*best)


def _divergence(counts: np.ndarray, begin: int, end: int, bins: int) -> float:
    """How much [begin, end) loses in fewer bins; the other counts are added to its ends."""
    kept = counts[begin:end]
    full = kept.copy()
    full[0] += counts[:begin].sum()
    full[-1] += counts[end:].sum()
    width = kept.size // bins
    group = np.minimum(np.arange(kept.size) // width, bins - 1)
    in_bins = np.arange(kept.size) < bins * width
    sums = np.bincount(group, weights=kept, minlength=bins)
    present = np.bincount(group, weights=(full != 0) & in_bins, minlength=bins)
    each = np.where(present != 0, sums // np.maximum(present, 1), 0)  # whole counts
    p, q = smooth_distribution(full), smooth_distribution(np.where(in_bins, each[group], 0))
    if p is None or q is None:
        return np.inf
    return float(entropy(p, q))


def entropy(pk: np.ndarray, qk: np.ndarray, base: float | None = None, axis: int = 0) -> Any:
    """The Kullback-Leibler divergence of `pk` from `qk`, which are scaled to sum up to 1.

    It is infinite where these are no probabilities.

    base   of the logarithm; None: e
    """
    p, q = np.asarray(pk, np.float64), np.asarray(qk, np.float64)
    p, q = p / p.sum(axis, keepdims=True), q / q.sum(axis, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where((p > 0) & (q > 0), p * np.log(p / q), np.inf)
        terms[(p == 0) & (q >= 0)] = 0
    return terms.sum(axis) / (1 if base is None else np.log(base))


def distribution(histogram: Histogram, scenario: str) -> TensorData:
    """Mean and deviation. Scenario "p3" takes those of the numbers' cube roots."""
    if scenario not in ("same", "p3"):
        raise ValueError(f"Invalid scenario. Must be in {{'same', 'p3'}}, got {scenario!r}")
    edges, counts = histogram.edges, histogram.counts
    centers = (edges[:-1] + edges[1:]) / 2
    numbers = np.cbrt(centers) if scenario == "p3" else centers
    share = counts / counts.sum()
    mean = (share * numbers).sum()
    deviation = np.sqrt((share * numbers**2).sum() - mean**2)
    return TensorData(
        avg=np.asarray(mean, edges.dtype),
        std=np.asarray(deviation, edges.dtype),
        hist=counts,
        hist_edges=edges,
        lowest=np.asarray(edges.min()),
        highest=np.asarray(edges.max()),
    )


class HistogramCollector:
    """Histograms of values by name, and the ranges that a method computes from them.

    method   "entropy", "percentile" or "distribution"
    """

    METHODS = ("distribution", "entropy", "percentile")

    def __init__(
        self,
        method: str,
        symmetric: bool,
        num_bins: int,
        num_quantized_bins: int,
        percentile: float,
        scenario: str,
    ) -> None:
        if method not in self.METHODS:
            raise ValueError(f"expected one of {', '.join(self.METHODS)}, got {method!r}")
        if method == "distribution" and num_bins < FEWEST_BINS:
            raise ValueError(f"Invalid num_bins. Must be in range 512 <= num_bins, got {num_bins}")
        self.method = method
        self.symmetric = symmetric
        self.num_bins = num_bins
        self.num_quantized_bins = num_quantized_bins
        self.percentile = percentile
        self.scenario = scenario
        self.histogram_dict: dict[str, Histogram] = {}

    def get_histogram_dict(self) -> dict[str, Histogram]:
        """The histograms so far."""
        return self.histogram_dict

    def collect(self, name_to_arr: Mapping[str, Any]) -> None:
        """Counts arrays, or lists of arrays, by name."""
        is_distance = self.method == "percentile" and self.symmetric
        count = count_distances if is_distance else count_signed
        for name, arrays in name_to_arr.items():
            several = arrays if isinstance(arrays, list) else [arrays]
            numbers = np.concatenate([np.ravel(one) for one in several])
            known = self.histogram_dict.get(name)
            self.histogram_dict[name] = count(numbers, self.num_bins, known)

    def compute_collection_result(self) -> dict[str, TensorData]:
        """The ranges that the method computes from each histogram."""
        if not self.histogram_dict:
            raise ValueError("Histogram has not been collected. Please run collect() first.")
        return {name: self._result(one) for name, one in self.histogram_dict.items()}

    def _result(self, histogram: Histogram) -> TensorData:
        if self.method == "entropy":
            return entropy_range(histogram, self.num_quantized_bins)
        if self.method == "percentile":
            return percentile_range(histogram, self.percentile, self.symmetric)
        return distribution(histogram, self.scenario)
