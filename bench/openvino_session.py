"""OpenVINO's CPU plugin with the part of onnxruntime's API that worker.py uses.

    python bench/compare.py --reference openvino_session ...    # after: pip install openvino

Float32 models stay in float32, as in the other runtimes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino

__version__ = openvino.__version__.split("-")[0]


class SessionOptions:
    intra_op_num_threads = 0
    inter_op_num_threads = 0
    log_severity_level = 2


class InferenceSession:
    def __init__(self, path: str, options: SessionOptions, providers: list[str]) -> None:
        settings: dict[str, Any] = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
            "INFERENCE_PRECISION_HINT": "f32",
        }
        if options.intra_op_num_threads:
            settings["INFERENCE_NUM_THREADS"] = options.intra_op_num_threads
        compiled = openvino.Core().compile_model(path, "CPU", settings)
        self._request = compiled.create_infer_request()
        self._count = len(compiled.outputs)

    def run(self, _names: None, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        results = self._request.infer(feeds, share_inputs=True)
        return [np.array(results[i]) for i in range(self._count)]
