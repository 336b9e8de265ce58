"""Other exchanges of values than NumPy: DLPack, sparse tensors, bindings by address, copies."""

import gc

import graphs
import ml_dtypes
import numpy as np
import onnxruntime
import pytest
import tenon
from onnx import TensorProto, helper
from tenon.capi.onnxruntime_pybind11_state import OrtValueVector

X = np.arange(6, dtype=np.float32).reshape(2, 3)
DLPACK_TYPES = (
    "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool "
    "complex64 complex128"
).split()


@pytest.mark.parametrize("dtype", DLPACK_TYPES)
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 4), (1,)])
def test_dlpack_goes_both_ways_without_a_copy(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.ones(shape, dtype)
    value = tenon.OrtValue.from_dlpack(x)
    assert value.shape() == list(shape)
    if x.size:
        assert value.data_ptr() == x.ctypes.data
    back = np.from_dlpack(value)
    assert (back.dtype, back.shape) == (x.dtype, x.shape)
    assert value.__dlpack_device__() == (1, 0)
    del value, x
    gc.collect()
    assert (back == np.ones(shape, dtype)).all()


def test_dlpack_keeps_its_owner_until_both_are_gone() -> None:
    released = []

    class Owner(np.ndarray):
        def __del__(self) -> None:
            released.append(True)

    value = tenon.OrtValue.from_dlpack(X.copy().view(Owner))
    capsule = value.to_dlpack()
    del value
    gc.collect()
    assert not released
    del capsule  # there was no consumer
    gc.collect()
    assert released


class Lender:
    """A tensor of a library that has DLPack and nothing else."""

    def __init__(self, tensor: object) -> None:
        self.tensor = tensor

    def __dlpack__(self, **arguments: object) -> object:
        return self.tensor.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("name", [*DLPACK_TYPES, "bfloat16", "float8_e4m3fn", "float8_e5m2fnuz"])
def test_runs_take_tensors_that_lend_their_memory(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x = np.ones((2, 3), dtype)
    element_type = helper.np_dtype_to_tensor_dtype(dtype)
    session = tenon.InferenceSession(graphs.identity(element_type, [2, 3]))
    (y,) = session.run(None, {"x": Lender(tenon.OrtValue.ortvalue_from_numpy(x))})
    assert y.dtype == dtype
    assert (y == x).all()


def test_tensors_that_cannot_be_lent_are_converted() -> None:
    class Transposed(Lender):
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return self.tensor

        def __iter__(self) -> object:
            raise AssertionError("the array is not taken apart")

    session = tenon.InferenceSession(graphs.identity(shape=[3, 2]))
    (y,) = session.run(None, {"x": Transposed(X.T)})
    assert (y == X.T).all()


def test_dlpack_refuses_what_has_gaps() -> None:
    with pytest.raises(ValueError, match="row-major"):
        tenon.OrtValue.from_dlpack(X.T)
    with pytest.raises(TypeError):
        tenon.OrtValue.ortvalue_from_numpy(np.array(["a"])).to_dlpack()


def test_bytes_may_be_truth_values() -> None:
    capsule = tenon.OrtValue.ortvalue_from_numpy(np.array([1, 0], np.uint8)).to_dlpack()
    value = tenon.OrtValue.from_dlpack(capsule, is_bool_tensor=True)
    assert value.numpy().tolist() == [True, False]


def test_values_are_arrays_to_numpy() -> None:
    value = tenon.OrtValue.ortvalue_from_numpy(X)
    assert np.shares_memory(np.asarray(value), X)
    assert np.asarray(value, np.float64).dtype == np.float64
    assert tenon.OrtValue(value) is value


def test_vectors_of_values() -> None:
    vector = OrtValueVector()
    vector.push_back(tenon.OrtValue.ortvalue_from_numpy(X))
    vector.push_back(np.array([True]))
    assert vector.bool_tensor_indices() == [1]
    assert vector.element_type_at(0) == TensorProto.FLOAT
    shapes = [np.from_dlpack(Capsule(one)).shape for one in vector.to_dlpacks(None)]
    assert shapes == [(2, 3), (1,)]


class Capsule:
    """An object from which NumPy takes a capsule."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


# Three values of a 3 x 3 tensor, in the forms of both libraries.
VALUES = np.array([1, 2, 3], np.float32)


@pytest.mark.parametrize("library", [tenon, onnxruntime])
def test_sparse_tensors_keep_values_and_places(library: object) -> None:
    device = library.OrtDevice.make("cpu", 0)
    shape = np.array([3, 3], np.int64)
    coo = library.SparseTensor.sparse_coo_from_numpy(
        shape, VALUES, np.array([0, 4, 8], np.int64), device
    )
    assert list(coo.dense_shape()) == [3, 3]
    assert coo.values().tolist() == [1, 2, 3]
    assert coo.as_coo_view().indices().tolist() == [0, 4, 8]
    assert coo.format().name == "ORT_SPARSE_COO"
    assert coo.data_type() == "sparse_tensor(float)"
    assert coo.device_name() == "cpu"
    csr = library.SparseTensor.sparse_csr_from_numpy(
        shape, VALUES, np.array([0, 1, 2], np.int64), np.array([0, 1, 2, 3], np.int64), device
    )
    assert csr.as_csrc_view().inner().tolist() == [0, 1, 2]
    assert csr.as_csrc_view().outer().tolist() == [0, 1, 2, 3]
    value = library.OrtValue.ort_value_from_sparse_tensor(csr)
    assert value.is_sparse_tensor()
    assert value.as_sparse_tensor().values().tolist() == [1, 2, 3]


def test_blocks_of_sparse_tensors() -> None:
    blocks = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    places = np.array([[0, 1], [0, 1]], np.int32)
    sparse = tenon.SparseTensor.blocksparse_from_numpy([4, 4], blocks, places)
    assert sparse.as_blocksparse_view().indices().tolist() == places.tolist()
    assert sparse.values().tolist() == blocks.tolist()


@pytest.mark.parametrize("element_type", [np.float32, TensorProto.FLOAT])
def test_bindings_take_addresses(element_type: object) -> None:
    session = tenon.InferenceSession(graphs.double())
    x, y = X.copy(), np.zeros_like(X)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, element_type, x.shape, x.ctypes.data)
    binding.bind_output("y", "cpu", 0, element_type, y.shape, y.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y, 2 * x)
    assert len(binding.get_outputs_as_ortvaluevector()) == 1
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []
    with pytest.raises(RuntimeError, match="expected one of"):
        binding.bind_cpu_input("wrong", x)
    for device in ("cuda", "gpu", "npu"):
        with pytest.raises(RuntimeError, match=f"no provider .* memory on the device {device} 0"):
            binding.bind_output("y", device)
    with pytest.raises(ValueError, match="Unsupported device type: 'abacus'"):
        binding.bind_output("y", "abacus")


@pytest.mark.parametrize("element_type", ["U1", "S1", object, int(TensorProto.STRING)])
def test_bindings_take_no_addresses_of_strings(element_type: object) -> None:
    binding = tenon.InferenceSession(graphs.double()).io_binding()
    with pytest.raises(RuntimeError, match="Only binding non-string Tensors"):
        binding.bind_input("x", "cpu", 0, element_type, [1], X.ctypes.data)


def test_allocators_are_found_by_their_memory() -> None:
    memory = tenon.OrtMemoryInfo.create_v2(
        "Nowhere",
        tenon.OrtMemoryInfoDeviceType.GPU,
        0xDEAD,
        0,
        tenon.OrtDeviceMemoryType.HOST_ACCESSIBLE,
        0,
        tenon.OrtAllocatorType.ORT_DEVICE_ALLOCATOR,
    )
    with pytest.raises(RuntimeError, match="No shared allocator found for the memory 'Nowhere'"):
        tenon.OrtValue.ortvalue_from_shape_and_type([2], np.float32, memory_info=memory)


def test_sparse_tensors_hold_strings_and_lend_read_only_arrays() -> None:
    texts, places = np.array(["ab", "", "\xe4"]), np.array([0, 4, 8])
    sparse = tenon.SparseTensor.sparse_coo_from_numpy([3, 3], texts, places)
    assert sparse.data_type() == "sparse_tensor(string)"
    indices = sparse.as_coo_view().indices()
    assert indices.tolist() == places.tolist()
    assert not indices.flags.writeable


def test_native_sessions_run_with_values() -> None:
    session = tenon.InferenceSession(graphs.double())._sess
    value = tenon.OrtValue.ortvalue_from_numpy(X)
    results = session.run_with_ort_values({"x": value}, ["y"], tenon.RunOptions())
    assert type(results).__name__ == "OrtValueVector"
    np.testing.assert_array_equal(results[0].numpy(), 2 * X)


def test_bindings_write_into_values() -> None:
    session = tenon.InferenceSession(graphs.double())
    value = session.create_ortvalue_from_shape_and_type([2, 3], np.float32, "cpu")
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", tenon.OrtValue.ortvalue_from_numpy(X))
    binding.bind_ortvalue_output("y", value)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    np.testing.assert_array_equal(value.numpy(), 2 * X)


def test_tensors_are_copied() -> None:
    source = tenon.OrtValue.ortvalue_from_numpy(X)
    into = tenon.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    tenon.copy_tensors([source], [into])
    np.testing.assert_array_equal(into.numpy(), X)
    with pytest.raises(ValueError, match="as many"):
        tenon.copy_tensors([source], [])


def test_initializers_come_from_values() -> None:
    weight = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL
    )
    for key, text in (("location", "weights.bin"), ("offset", "0"), ("length", "12")):
        weight.external_data.add(key=key, value=text)
    model = graphs.model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [graphs.tensor("x")],
        [graphs.tensor("y")],
        initializers=[weight],
    )
    w = np.array([10, 20, 30], np.float32)
    options = tenon.SessionOptions()
    options.add_external_initializers(["w"], [tenon.OrtValue.ortvalue_from_numpy(w)])
    (y,) = tenon.InferenceSession(model, options).run(None, {"x": X})
    np.testing.assert_array_equal(y, X + w)
    options = tenon.SessionOptions()
    content = w.tobytes()
    options.add_external_initializers_from_files_in_memory(["weights.bin"], [content], [12])
    (y,) = tenon.InferenceSession(model, options).run(None, {"x": X})
    np.testing.assert_array_equal(y, X + w)
