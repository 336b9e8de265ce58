"""Whether onnxruntime's sums of products of bytes saturate, as without the VNNI instructions."""

import functools

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper


@functools.cache
def saturates() -> bool:
    """255 * 127 + 255 * 127 does not fit in 16 bits."""
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b"], ["y"])],
        "graph",
        [
            helper.make_tensor_value_info("a", TensorProto.UINT8, [1, 64]),
            helper.make_tensor_value_info("b", TensorProto.INT8, [64, 16]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 16])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    feeds = {"a": np.full((1, 64), 255, np.uint8), "b": np.full((64, 16), 127, np.int8)}
    return bool(np.any(session.run(None, feeds)[0] != 64 * 255 * 127))


REASON = "onnxruntime's sums of products of bytes saturate on this processor"
needs_exact_sums = pytest.mark.skipif(saturates(), reason=REASON)


def exact_session(
    content: bytes, options: onnxruntime.SessionOptions
) -> onnxruntime.InferenceSession:
    """A session that uses other kernels where sums would saturate, if it has them.

    onnxruntime fails to rewrite weights for them that two operators read; then the test is skipped.
    """
    entry = "session.x64quantprecision"
    errors = onnxruntime.capi.onnxruntime_pybind11_state
    try:
        if saturates():
            options.add_session_config_entry(entry, "1")
        return onnxruntime.InferenceSession(content, options)
    except errors.Fail as failure:
        if not saturates() or "replace the existing tensor" not in str(failure):
            raise
        pytest.skip(REASON)
    except errors.NotImplemented:
        options.add_session_config_entry(entry, "0")
        return onnxruntime.InferenceSession(content, options)
