"""Tests an installed package `tenon` with NumPy alone, and `tenon-onnxruntime` where it is.

`./dev release-check` and cibuildwheel run it in fresh virtual environments.

Usage: try_package.py
"""

import importlib
import importlib.util
import pathlib
import sys

import numpy as np
import tenon
from check_version import version_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits"
SEEN = "0123436789"  # in the samples of 0 to 9: the model takes 5 for 3
sys.path.append(str(DIGITS))

from demo import read_png  # noqa: E402 - needs the path above


def main() -> int:
    package = pathlib.Path(tenon.__file__).resolve()
    assert package.is_relative_to(sys.prefix), f"{package} is not installed"
    assert tenon.__version__ == version_of(ROOT), tenon.__version__

    pictures = sorted((DIGITS / "samples").glob("*.png"))
    assert pictures
    images = np.stack([read_png(path) for path in pictures])[:, np.newaxis]
    session = tenon.InferenceSession(DIGITS / "digits.onnx")
    (probabilities,) = session.run(None, {"image": images})
    assert "".join(map(str, probabilities.argmax(axis=1))) == SEEN

    try:
        session.run(None, {"image": images[:, :, :4]})
    except tenon.capi.onnxruntime_pybind11_state.InvalidArgument as error:
        assert "image" in str(error), error
    else:
        raise AssertionError("an image of half the size was accepted")
    if importlib.util.find_spec("onnxruntime"):  # of the package tenon-onnxruntime
        onnxruntime = importlib.import_module("onnxruntime")
        assert onnxruntime.InferenceSession is tenon.InferenceSession, onnxruntime.__file__
    print(f"tenon {tenon.__version__} works on Python {sys.version.split()[0]}: {package.parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
