"""Counts the instructions of calls on a model of one Identity, for test_costs.py."""

import pathlib
import sys

import graphs
import instructions
import numpy as np
import tenon


def main(folder: pathlib.Path) -> None:
    path = folder / "model.onnx"
    path.write_bytes(graphs.identity(shape=[4]))
    model, x = str(path), np.zeros(4, np.float32)
    recorder = instructions.Recorder(folder)
    providers = ["CPUExecutionProvider"]
    options = tenon.SessionOptions()
    options.intra_op_num_threads = 1  # those that wait do so in instructions
    ours = tenon.InferenceSession(model, options, providers)
    binding = ours.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    recorder.measure("run", lambda: ours.run(None, {"x": x}))
    recorder.measure("bound_run", lambda: ours.run_with_iobinding(binding))
    recorder.measure("session", lambda: tenon.InferenceSession(model, options, providers), 10)

    import onnxruntime  # noqa: PLC0415 - last: a thread of it works in the background

    their_options = onnxruntime.SessionOptions()
    their_options.intra_op_num_threads = 1
    theirs = onnxruntime.InferenceSession(model, their_options, providers)
    recorder.measure("their_run", lambda: theirs.run(None, {"x": x}))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
