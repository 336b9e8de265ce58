"""Infers the shapes of all values of a model, with names for sizes that are known only in a run.

On a command line: python -m tenon.tools.symbolic_shape_infer --input IN --output OUT
"""

from __future__ import annotations

import argparse

import onnx


class SymbolicShapeInference:
    """Inference by ONNX's schemas, with propagation of the data of shape computations."""

    @staticmethod
    def infer_shapes(
        in_mp: onnx.ModelProto,
        int_max: int = 2**31 - 1,
        auto_merge: bool = False,
        guess_output_rank: bool = False,
        verbose: int = 0,
        prefix: str = "",
    ) -> onnx.ModelProto:
        """The model with inferred types and shapes. Raises for shapes that contradict."""
        model = onnx.shape_inference.infer_shapes(
            in_mp, check_type=False, strict_mode=not auto_merge, data_prop=True
        )
        name_unknown_sizes(model.graph, prefix)
        return model


def name_unknown_sizes(graph: onnx.GraphProto, prefix: str) -> None:
    """Gives names to sizes of which nothing is known."""
    for value in graph.value_info:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.WhichOneof("value") is None:
                dim.dim_param = f"{prefix}{value.name}_dim_{axis}"


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, help="the model")
    parser.add_argument("--output", required=True, help="where the result goes")
    parser.add_argument("--auto_merge", action="store_true", help="go on where shapes contradict")
    parser.add_argument("--int_max", type=int, default=2**31 - 1, help="accepted")
    parser.add_argument("--guess_output_rank", action="store_true", help="accepted")
    parser.add_argument("--verbose", type=int, default=0, help="accepted")
    arguments = parser.parse_args()
    model = SymbolicShapeInference.infer_shapes(
        onnx.load(arguments.input), arguments.int_max, arguments.auto_merge
    )
    onnx.save(model, arguments.output)


if __name__ == "__main__":
    main()
