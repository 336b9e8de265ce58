"""What a profiled session ran."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import tenon


def profiled(
    model: bytes, feeds: dict, folder: pathlib.Path, options: tenon.SessionOptions | None = None
) -> tuple[list[np.ndarray], list[str]]:
    """The results of one run, and the operators of the nodes that ran, in their order."""
    options = options or tenon.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "trace")
    session = tenon.InferenceSession(model, options)
    results = session.run(None, feeds)
    events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    nodes = [event for event in events if event["name"].endswith("_kernel_time")]
    return results, [event["args"]["op_name"] for event in nodes]
