"""A run that is to end ends inside its kernels."""

import contrib
import long_kernels
import numpy as np
import pytest
import tenon

Fail = tenon.capi.onnxruntime_pybind11_state.Fail


@pytest.mark.parametrize("case", long_kernels.CASES)
def test_a_late_run_ends_inside_its_kernel(case: object) -> None:
    content, inputs = case()
    threads = tenon.SessionOptions()
    threads.intra_op_num_threads = 2  # more would be done in time
    session = tenon.InferenceSession(content, threads)
    feeds = {x.name: inputs[int(x.name[1:])] for x in session.get_inputs()}
    for milliseconds in (10, 20, 40, 80, 160):  # a busy machine may begin the kernel later
        options = tenon.RunOptions()
        options.add_run_config_entry("tenon.run_timeout_ms", str(milliseconds))
        with pytest.raises(Fail) as failure:
            session.run(None, feeds, options)
        if f"the run passed its deadline of {milliseconds} ms in " in str(failure.value):
            return
    pytest.fail(f"no run ended inside its kernel: {failure.value}")


def test_weights_that_a_late_run_packed_are_whole() -> None:
    weights = contrib.floats(256, 512, seed=1)
    content = contrib.model(
        "MatMul", [contrib.floats(4096, 256), weights], {"y": np.float32}, domain="", constants=(1,)
    )
    x = contrib.floats(4096, 256)
    expected = tenon.InferenceSession(content).run(None, {"x0": x})[0]
    session = tenon.InferenceSession(content)
    options = tenon.RunOptions()
    options.add_run_config_entry("tenon.run_timeout_ms", "1")
    for _ in range(20):
        try:
            session.run(None, {"x0": x}, options)
        except Fail:
            break
    np.testing.assert_array_equal(session.run(None, {"x0": x})[0], expected)


@pytest.mark.parametrize("milliseconds", [2**63 // 10**6, 2**62, 2**64 - 1])
def test_a_deadline_past_the_end_of_the_clock_never_comes(milliseconds: int) -> None:
    x = contrib.floats(3)
    session = tenon.InferenceSession(contrib.model("Neg", [x], {"y": np.float32}, domain=""))
    options = tenon.RunOptions()
    options.add_run_config_entry("tenon.run_timeout_ms", str(milliseconds))
    np.testing.assert_array_equal(session.run(None, {"x0": x}, options)[0], -x)
