"""Runs models on the provider of onnxruntime-ep-openvino; with onnxruntime, on the CPU's.

The provider claims processors of Intel alone, though OpenVINO computes on others, too. So the
library's function that tells the vendor is replaced by one that always says Intel.
"""

import ctypes
import mmap

import numpy as np
import onnx
import onnxruntime
import onnxruntime_ep_openvino
from onnx import numpy_helper
from report import save

HARDWARE_DEVICE_VENDOR_ID = 308  # the slot of the table OrtApi
INTEL = 0x8086
IN_FLOAT32 = '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}'  # by default bfloat16 where it is fast

CONVOLUTIONS = """
<ir_version: 8, opset_import: ["": 17]>
convolutions (float[n, 3, 32, 32] x) => (float[n, 10] y)
    <float[8, 3, 3, 3] w, float[8] b, float[8, 10] v> {
    c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
    r = Relu(c)
    p = GlobalAveragePool(r)
    f = Flatten <axis = 1> (p)
    m = MatMul(f, v)
    y = Softmax <axis = -1> (m)
}
"""
ATTENTION = """
<ir_version: 8, opset_import: ["": 17]>
attention (float[n, 6, 16] x) => (float[n, 6, 16] y) <float[16, 16] q, float[16, 16] k> {
    a = MatMul(x, q)
    b = MatMul(x, k)
    t = Transpose <perm = [0, 2, 1]> (b)
    s = MatMul(a, t)
    p = Softmax <axis = -1> (s)
    o = MatMul(p, x)
    y = Add(o, x)
}
"""


def pretend_to_be_intel(library: str) -> object:
    """Returns what must live as long as the library."""

    class ApiBase(ctypes.Structure):
        _fields_ = (("get_api", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)),)

    get_base = ctypes.CDLL(library).OrtGetApiBase
    get_base.restype = ctypes.POINTER(ApiBase)
    slot = get_base().contents.get_api(23) + HARDWARE_DEVICE_VENDOR_ID * 8
    page = slot // mmap.PAGESIZE * mmap.PAGESIZE
    writable = mmap.PROT_READ | mmap.PROT_WRITE
    assert not ctypes.CDLL(None).mprotect(ctypes.c_void_p(page), mmap.PAGESIZE * 2, writable)
    answer = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(lambda device: INTEL)
    ctypes.c_void_p.from_address(slot).value = ctypes.cast(answer, ctypes.c_void_p).value
    return answer


def options() -> onnxruntime.SessionOptions:
    """Of the CPU's provider with onnxruntime, of OpenVINO with Tenon."""
    chosen = onnxruntime.SessionOptions()
    if is_tenon:
        devices = [
            device
            for device in onnxruntime.get_ep_devices()
            if device.ep_name == onnxruntime_ep_openvino.get_ep_name()
            and device.ep_metadata.get("ov_device") == "CPU"
        ]
        chosen.add_provider_for_devices(devices[:1], {"load_config": IN_FLOAT32})
        chosen.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return chosen


is_tenon = getattr(onnxruntime, "is_tenon", False)
if is_tenon:
    import pathlib

    import tenon

    kept = pretend_to_be_intel(str(pathlib.Path(tenon.__file__).parent / "libtenon.so.1"))
    onnxruntime.register_execution_provider_library(
        "openvino", onnxruntime_ep_openvino.get_library_path()
    )
rng = np.random.default_rng(0)
found = {}
for text in (CONVOLUTIONS, ATTENTION):
    model = onnx.parser.parse_model(text)
    for value in list(model.graph.value_info):
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        weights = rng.standard_normal(shape, np.float32) / 4
        model.graph.initializer.append(numpy_helper.from_array(weights, value.name))
    session = onnxruntime.InferenceSession(model.SerializeToString(), options())
    sizes = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim[1:]]
    for batch in (1, 3):
        x = rng.standard_normal((batch, *sizes), np.float32)
        found[f"{model.graph.name}_{batch}"] = session.run(None, {"x": x})[0]
    binding = session.io_binding()
    bound = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros_like(found[f"{model.graph.name}_3"]))
    binding.bind_cpu_input("x", x)
    binding.bind_ortvalue_output("y", bound)
    session.run_with_iobinding(binding)
    found[f"{model.graph.name}_bound"] = bound.numpy()
    del binding, session
save(**found)
