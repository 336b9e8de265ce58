"""Kernels execute no more instructions than when their numbers here were written.

A number that grows on purpose is written anew; one that shrinks, too. They hold for one compiler
and one instruction set, which valgrind fixes: without AVX-512.
"""

import pathlib

import instructions
import pytest
import tenon  # noqa: F401 - loads the library

# Thousands of instructions of one run, with GCC 12.2 and AVX2.
EXPECTED = {
    "add_of_a_row": 28.9,
    "conv_1d": 161.2,
    "conv_3x3": 326.6,
    "conv_depthwise": 61.6,
    "erf": 41.8,
    "gather": 25.7,
    "layer_normalization": 54.0,
    "lstm": 84.0,
    "matmul": 214.4,
    "matmul_of_4_bits": 33.4,
    "matmul_of_a_row": 46.1,
    "matmul_of_activations": 98.2,
    "max_pool": 100.6,
    "quantized_conv": 819.0,
    "reduce_mean": 33.5,
    "resize": 91.4,
    "softmax": 92.5,
    "top_k": 248.0,
    "transpose": 63.1,
}


def lacking() -> str:
    if reason := instructions.lacking():
        return reason
    maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
    library = next(line.split()[-1] for line in maps if "libtenon.so" in line)
    if b"GCC: (Debian 12.2" not in pathlib.Path(library).read_bytes():
        return "the library was not compiled by Debian's GCC 12.2"
    return "" if " avx2 " in pathlib.Path("/proc/cpuinfo").read_text() else "needs AVX2"


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    if reason := lacking():
        pytest.skip(reason)
    return instructions.measured("counted_kernels.py", tmp_path_factory.mktemp("kernels"))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_kernel_costs_no_more_than_before(name: str, counts: dict[str, float]) -> None:
    assert counts[name] / 1000 == pytest.approx(EXPECTED[name], rel=0.03, abs=1)


def test_every_kernel_is_counted(counts: dict[str, float]) -> None:
    assert counts.keys() == EXPECTED.keys()
