"""Small models for examples."""

import pathlib


def get_example(name: str) -> str:
    """The path of an example: logreg_iris.onnx, mul_1.onnx or sigmoid.onnx."""
    path = pathlib.Path(__file__).resolve().parent / name
    if not path.is_file():
        raise FileNotFoundError(f"Unable to find example '{name}'")
    return str(path)
