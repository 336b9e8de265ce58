"""Values in the memory of a plugin's device, and bindings to devices.

The device is the mock of the C++ tests. Its memory is no memory of the host for the runtime, which
has to copy.
"""

import ctypes
import pathlib
from collections.abc import Iterator

import graphs
import numpy as np
import pytest
import tenon

LIBRARY = pathlib.Path(tenon.__file__).parents[2] / "tests/plugin/libmock_plugin.so"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def device() -> Iterator[tenon.OrtEpDevice]:
    if not LIBRARY.exists():
        pytest.skip(f"needs {LIBRARY}: the C++ tests are not built")
    mock = ctypes.CDLL(str(LIBRARY))
    mock.MockMemory.argtypes = [ctypes.c_bool, ctypes.c_bool]
    mock.MockMemory(True, True)
    tenon.register_execution_provider_library("mock_with_memory", str(LIBRARY))
    yield next(one for one in tenon.get_ep_devices() if one.ep_name == "MockProvider")
    tenon.unregister_execution_provider_library("mock_with_memory")
    mock.MockMemory(False, False)


def vendor_of(device: tenon.OrtEpDevice) -> int:
    return device.memory_info(tenon.OrtDeviceMemoryType.DEFAULT).device_vendor_id


def on_device(device: tenon.OrtEpDevice, array: np.ndarray) -> tenon.OrtValue:
    return tenon.OrtValue.ortvalue_from_numpy(array, "gpu", 0, vendor_of(device))


def test_values_are_copied_to_a_device_and_back(device: tenon.OrtEpDevice) -> None:
    value = on_device(device, X)
    assert (value.device_name(), value.shape()) == ("gpu", [2, 3])
    np.testing.assert_array_equal(value.numpy(), X)
    np.testing.assert_array_equal(np.asarray(value), X)
    value.update_inplace(X + 1)
    np.testing.assert_array_equal(value.numpy(), X + 1)
    value.numpy()[:] = 0  # a copy
    np.testing.assert_array_equal(value.numpy(), X + 1)
    with pytest.raises(TypeError, match="on a device lends no memory"):
        value.__dlpack__()
    with pytest.raises(BufferError, match="on a device lends no memory"):
        memoryview(value)


def test_values_are_copied_between_memories(device: tenon.OrtEpDevice) -> None:
    value = on_device(device, X)
    copy = tenon.OrtValue.ortvalue_from_shape_and_type(X.shape, X.dtype)
    tenon.copy_tensors([value], [copy])
    np.testing.assert_array_equal(copy.numpy(), X)


def test_memory_that_the_host_reads_is_shared(device: tenon.OrtEpDevice) -> None:
    memory = device.memory_info(tenon.OrtDeviceMemoryType.HOST_ACCESSIBLE)
    value = tenon.OrtValue.ortvalue_from_shape_and_type([2, 3], 1, memory_info=memory)
    assert value.device_name() == "gpu"
    value.numpy()[:] = X
    np.testing.assert_array_equal(value.numpy(), X)
    with pytest.raises(RuntimeError, match="non-string numpy arrays"):
        tenon.OrtValue.ortvalue_from_shape_and_type([2], str, memory_info=memory)


def test_bindings_put_values_on_a_device(device: tenon.OrtEpDevice) -> None:
    options = tenon.SessionOptions()
    options.add_provider_for_devices([device], {})
    session = tenon.InferenceSession(graphs.double([2, 3]), options)
    source, target = on_device(device, X), on_device(device, np.zeros_like(X))
    binding = session.io_binding()
    binding.bind_input("x", "gpu", 0, np.float32, X.shape, source.data_ptr())
    binding.synchronize_inputs()
    binding.bind_output("y", "gpu")
    session.run_with_iobinding(binding)
    (y,) = binding.get_outputs()
    assert y.device_name() == "gpu"
    np.testing.assert_array_equal(y.numpy(), 2 * X)
    binding.bind_output("y", "gpu", 0, np.float32, X.shape, target.data_ptr())
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    np.testing.assert_array_equal(target.numpy(), 2 * X)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], 2 * X)
    binding.bind_ortvalue_input("x", target)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], 4 * X)
