"""Models written to files."""

from __future__ import annotations

import os

import onnx
from onnx import ModelProto, external_data_helper

from ._loading import MODEL_SIZE_THRESHOLD


def save(model: ModelProto, path: str | os.PathLike[str], use_external_data: bool = False) -> None:
    """Writes the model. If it is too large for one file, its constants go into a second file."""
    target = os.fspath(path)
    if not use_external_data and model.ByteSize() < MODEL_SIZE_THRESHOLD:
        onnx.save(model, target)
        return
    location = os.path.basename(target) + ".data"
    beside = os.path.join(os.path.dirname(target), location)
    if os.path.exists(beside):
        os.remove(beside)  # new data would be appended to it
    onnx.save(model, target, save_as_external_data=True, location=location, convert_attribute=True)
    # Writing removed the constants from the model.
    external_data_helper.load_external_data_for_model(model, os.path.dirname(target))
