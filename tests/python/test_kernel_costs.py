"""Kernels execute no more instructions than when their numbers here were written.

A number that grows on purpose is written anew; one that shrinks, too. They hold for one compiler
and one instruction set, which valgrind fixes: without AVX-512.
"""

import pathlib

import instructions
import pytest
import tenon  # noqa: F401 - loads the library

# Thousands of instructions of one run, more than one of Identity takes, with GCC 12.2 and AVX2.
EXPECTED = {
    "add_of_a_row": 15.8,
    "conv_1d": 148.0,
    "conv_3x3": 290.6,
    "conv_depthwise": 52.3,
    "erf": 28.7,
    "gather": 12.6,
    "layer_normalization": 38.4,
    "lstm": 61.8,
    "matmul": 188.0,
    "matmul_of_4_bits": 9.9,
    "matmul_of_a_row": 32.9,
    "matmul_of_activations": 76.1,
    "max_pool": 33.6,
    "quantized_conv": 235.9,
    "reduce_mean": 20.4,
    "resize": 78.2,
    "softmax": 59.8,
    "top_k": 151.8,
    "transpose": 41.8,
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
    measured = instructions.measured("counted_kernels.py", tmp_path_factory.mktemp("kernels"))
    call = measured.pop("call")
    return {name: count - call for name, count in measured.items()}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_kernel_costs_no_more_than_before(name: str, counts: dict[str, float]) -> None:
    assert counts[name] / 1000 == pytest.approx(EXPECTED[name], rel=0.03, abs=1)


def test_every_kernel_is_counted(counts: dict[str, float]) -> None:
    assert counts.keys() == EXPECTED.keys()
