"""The public surface of onnxruntime: the same names and parameters in Tenon."""

import inspect
import types

import onnxruntime
import onnxruntime.capi.onnxruntime_inference_collection as their_collection
import onnxruntime.capi.onnxruntime_pybind11_state as their_state
import pytest
import tenon
import tenon.capi.onnxruntime_inference_collection as our_collection
import tenon.capi.onnxruntime_pybind11_state as our_state

# Imports that are visible in their module, and leftovers of their build script.
NOT_API = {
    "capi",
    "contextlib",
    "cuda_version",
    "import_capi_exception",
    "onnxruntime_validation",
    "package_name",
    "datasets",  # shown if a program has imported it
    "quantization",  # shown if a program has imported it
    "tools",
    "transformers",
    "version",
}
# Internals that no program outside their own tree uses.
INTERNAL_STATE = {
    "SessionObjectInitializer",
    "get_all_operator_schema",
    "get_all_opkernel_def",
    "get_compatibility_info_from_model",
    "get_compatibility_info_from_model_bytes",
    "get_hardware_device_ep_incompatibility_details",
    "get_registered_ep_kernel_defs",
    "get_session_initializer",
    "opkernel",
    "pack_fp4_weights_for_cuda_moe_gemm",
    "schemadef",
}
COLLECTION = {
    "AdapterFormat",
    "IOBinding",
    "InferenceSession",
    "ModelCompiler",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "Session",
    "SparseTensor",
    "check_and_normalize_provider_args",
    "copy_tensors",
    "get_ort_device_type",
}


def names(module: types.ModuleType) -> set[str]:
    return {name for name in dir(module) if name[0] != "_"}


def test_has_the_same_names() -> None:
    assert names(onnxruntime) - NOT_API <= set(tenon.__all__)
    for name in tenon.__all__:
        getattr(tenon, name)


def test_has_the_same_native_names() -> None:
    top_level = set(tenon.__all__)  # where programs find them too
    assert names(their_state) - INTERNAL_STATE - names(our_state) <= top_level
    assert names(their_collection) >= COLLECTION
    assert names(our_collection) >= COLLECTION


CLASSES = sorted(
    name for name in names(onnxruntime) - NOT_API if inspect.isclass(getattr(onnxruntime, name))
)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_the_same_members(name: str) -> None:
    theirs, ours = getattr(onnxruntime, name), getattr(tenon, name)
    missing = {member for member in dir(theirs) if member[0] != "_"} - set(dir(ours))
    if hasattr(theirs, "__members__"):  # an enumeration
        for member in theirs.__members__:
            assert int(ours[member].value) == int(theirs.__members__[member]), member
        return  # dir() leaves out second names of a value
    assert not missing


def parameters(function: object) -> list[tuple[str, object]] | None:
    """Names and defaults of a function's parameters; None for native functions."""
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    plain = [p for p in signature.parameters.values() if p.kind not in (p.VAR_KEYWORD,)]
    return [(p.name, p.default is not p.empty) for p in plain if p.name != "self"]


@pytest.mark.parametrize("name", CLASSES)
def test_methods_take_the_same_parameters(name: str) -> None:
    theirs, ours = getattr(onnxruntime, name), getattr(tenon, name)
    for member in dir(theirs):
        is_ours = member[0] != "_" or member == "__init__"
        if not is_ours or hasattr(theirs, "__members__") or member not in dir(ours):
            continue
        wanted, given = (parameters(getattr(one, member)) for one in (theirs, ours))
        if wanted is None or given is None or ("args", False) in wanted:
            continue
        assert [p for p, _ in given][: len(wanted)] == [p for p, _ in wanted], member
        for (parameter, is_optional), (_, may_be_left) in zip(wanted, given, strict=False):
            assert may_be_left or not is_optional, (member, parameter)
        assert all(is_optional for _, is_optional in given[len(wanted) :]), member


def test_functions_take_the_same_parameters() -> None:
    for name in names(onnxruntime) - NOT_API:
        theirs = getattr(onnxruntime, name)
        wanted = None if inspect.isclass(theirs) else parameters(theirs)
        given = parameters(getattr(tenon, name))
        if wanted is not None and given is not None:
            assert [p for p, _ in given] == [p for p, _ in wanted], name


def test_exceptions_have_the_same_bases() -> None:
    for name in names(their_state):
        theirs = getattr(their_state, name)
        if inspect.isclass(theirs) and issubclass(theirs, BaseException):
            assert getattr(our_state, name).__mro__[1:] == theirs.__mro__[1:], name
