"""Prepares a model for quantization.

On a command line: python -m tenon.quantization.preprocess --input IN --output OUT
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .shape_inference import quant_pre_process

STEPS = ("optimization", "onnx_shape", "symbolic_shape")


def is_true(text: str) -> bool:
    """Parses the setting of a step."""
    words = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in words:
        raise argparse.ArgumentTypeError(f"expected true or false, got '{text}'")
    return words[text.lower()]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, help="the model")
    parser.add_argument("--output", required=True, help="where the result goes")
    for step in STEPS:
        parser.add_argument(
            f"--skip_{step}", type=is_true, default=False, help="true: leave it out"
        )
    parser.add_argument("--auto_merge", action="store_true", help="go on where shapes contradict")
    parser.add_argument("--int_max", type=int, default=2**31 - 1, help="accepted")
    parser.add_argument("--guess_output_rank", action="store_true", help="accepted")
    parser.add_argument("--verbose", type=int, default=0, help="accepted")
    parser.add_argument("--save_as_external_data", action="store_true", help="weights beside it")
    parser.add_argument("--all_tensors_to_one_file", action="store_true", help="all in one file")
    parser.add_argument("--external_data_location", help="that file, beside the result")
    parser.add_argument(
        "--external_data_size_threshold", type=int, default=1024, help="smaller ones stay"
    )
    given = parser.parse_args(arguments)
    if all(getattr(given, f"skip_{step}") for step in STEPS):
        parser.error("all steps are to be skipped: there is nothing to do")
    return given


def main(arguments: Sequence[str] | None = None) -> None:
    """Prepares as the command line says."""
    given = vars(parse_arguments(arguments))
    quant_pre_process(given.pop("input"), given.pop("output"), **given)


if __name__ == "__main__":
    main()
