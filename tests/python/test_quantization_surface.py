"""The names of onnxruntime.quantization, and the parameters of its functions and classes."""

import ast
import importlib
import importlib.util
import inspect
import pathlib
import types

import pytest

# Modules whose names programs use, and those that are left out, with the reason.
MODULES = {
    "": {
        "CudaQuantizer",  # lays weights out for kernels of CUDA that Tenon does not have
    },
    ".base_quantizer": {"QuantizationParams"},  # a dictionary inside of it
    ".calibrate": {
        "CalibrationDataCollector",  # the abstract base of one class
        "rel_entr",  # of SciPy
    },
    ".matmul_bnb4_quantizer": {"parse_args"},
    ".operators.qdq_base_operator": set(),
    ".onnx_model": set(),
    ".onnx_quantizer": set(),
    ".preprocess": set(),
    ".qdq_loss_debug": set(),
    ".qdq_quantizer": {  # records of its own
        "QDQBiasQuantInfo",
        "QDQQuantParamProvider",
        "QDQQuantTensorType",
        "QDQScaleZpInitializers",
        "QDQTensorQuantInfo",
        "QDQTensorQuantParams",
        "QDQTensorQuantizedValue",
        "QDQTensorScaleZpInitializers",
    },
    ".quant_utils": {
        "BiasToQuantize",  # records of their quantizers
        "QuantizedInitializer",
        "QuantizedValue",
        "apply_plot",  # draws with matplotlib
    },
    ".quantize": set(),
    ".registry": {"CreateDefaultOpQuantizer", "CreateOpQuantizer", "CreateQDQQuantizer"},
    ".shape_inference": set(),
    ".static_quantize_runner": set(),
    ".tensor_quant_overrides": set(),
}
# Methods of quantizers that only the quantizers call.
STEPS = {
    "ONNXQuantizer": {
        "add_new_nodes",
        "adjust_single_weight_scale_if_needed",
        "calculate_quantization_params",
        "contains_tensor",
        "find_initializer_in_path",
        "find_quantized_value",
        "get_tensor_type",
        "is_float_tensor",
        "quantize_activation",
        "quantize_bias_static",
        "quantize_initializer",
        "quantize_node_with_sub_graph",
        "quantize_subgraph",
        "quantize_weight",
        "quantize_weight_per_channel",
    },
    "QDQQuantizer": {
        "calc_graph_quant_params",
        "calc_quant_params",
        "quantize_bias_static",
        "remove_node",
        "remove_nodes",
        "try_replacing_upstream_output",
    },
    "BaseQuantizer": {
        "quantize_bias_static_impl",
        "quantize_initializer_impl",
        "quantize_weight_per_channel_impl",
    },
    "HistogramCollector": {
        "collect_absolute_value",
        "collect_value",
        "compute_distribution",
        "compute_entropy",
        "compute_percentile",
        "get_entropy_threshold",
        "merge_histogram",
    },
    "MinMaxCalibrater": {"merge_range"},
    "OnnxModelCalibrationDataReader": {"read_onnx_pb_data"},
}


def pair(module: str) -> tuple[types.ModuleType, types.ModuleType]:
    return (
        importlib.import_module(f"onnxruntime.quantization{module}"),
        importlib.import_module(f"tenon.quantization{module}"),
    )


def names(module: types.ModuleType) -> set[str]:
    """Its own functions and classes, or all that the package itself gives."""
    is_package = hasattr(module, "__path__")
    return {
        name
        for name, value in vars(module).items()
        if name[0] != "_"
        and (inspect.isclass(value) or inspect.isfunction(value))
        and (is_package or value.__module__ == module.__name__)
    }


def parameters(function: object) -> list[tuple[str, bool]]:
    """Names of parameters, and whether they are optional."""
    every = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    plain = [p for p in every if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    return [(p.name, p.default is not p.empty) for p in plain if p.name not in ("self", "cls")]


def expect_same_parameters(theirs: object, ours: object, what: str) -> None:
    """The same in that order; ours may have more optional ones."""
    wanted, given = parameters(theirs), parameters(ours)
    assert [name for name, _ in given[: len(wanted)]] == [name for name, _ in wanted], what
    for (name, is_optional), (_, may_be_left) in zip(wanted, given, strict=False):
        assert may_be_left or not is_optional, (what, name)
    assert all(is_optional for _, is_optional in given[len(wanted) :]), what


@pytest.mark.parametrize("module", MODULES)
def test_has_the_same_names(module: str) -> None:
    theirs, ours = pair(module)
    missing = {name for name in names(theirs) if not hasattr(ours, name)}
    assert missing == MODULES[module]


@pytest.mark.parametrize("module", MODULES)
def test_takes_the_same_parameters(module: str) -> None:
    theirs, ours = pair(module)
    for name in sorted(names(theirs) - MODULES[module]):
        one, other = getattr(theirs, name), getattr(ours, name)
        if inspect.isfunction(one):
            expect_same_parameters(one, other, name)
        elif hasattr(one, "__members__"):
            assert {m: v.value for m, v in one.__members__.items()} == {
                m: v.value for m, v in other.__members__.items()
            }
        else:
            expect_same_members(name, one, other)


def expect_same_members(name: str, theirs: type, ours: type) -> None:
    """Of classes: their constructors and methods."""
    if name not in ("TensorData", "CalibrationCacheEncoder", "CalibrationDataReader"):
        expect_same_parameters(theirs.__init__, ours.__init__, name)
    left_out = set().union(*(STEPS.get(base.__name__, set()) for base in theirs.__mro__))
    for member in dir(theirs):
        if member[0] == "_" or member in left_out:
            continue
        assert hasattr(ours, member), (name, member)
        one, other = getattr(theirs, member), getattr(ours, member)
        if inspect.isfunction(one):
            expect_same_parameters(one, other, f"{name}.{member}")


@pytest.mark.parametrize("registry", ["QDQRegistry", "QLinearOpsRegistry", "IntegerOpsRegistry"])
def test_quantizes_the_same_operators(registry: str) -> None:
    theirs, ours = pair(".registry")
    assert getattr(ours, registry).keys() == getattr(theirs, registry).keys()


def test_has_the_same_configurations_of_few_bits() -> None:
    """Theirs is parsed: its import needs a package that onnxruntime does not install."""
    name = ".matmul_nbits_quantizer"
    spec = importlib.util.find_spec(f"onnxruntime.quantization{name}")
    assert spec is not None and spec.origin is not None
    ours = importlib.import_module(f"tenon.quantization{name}")
    seen = set()
    for one in ast.parse(pathlib.Path(spec.origin).read_text(encoding="utf-8")).body:
        if not isinstance(one, ast.ClassDef):
            continue
        if one.name.endswith("Config") or one.name == "MatMulNBitsQuantizer":
            seen.add(one.name)
            made = next(f for f in one.body if getattr(f, "name", "") == "__init__")
            assert isinstance(made, ast.FunctionDef)
            wanted = [argument.arg for argument in made.args.args[1:]]
            given = parameters(getattr(ours, one.name).__init__)
            assert [parameter for parameter, _ in given] == wanted, one.name
            required = len(wanted) - len(made.args.defaults)
            assert all(is_optional for _, is_optional in given[required:]), one.name
    assert len(seen) == 8
