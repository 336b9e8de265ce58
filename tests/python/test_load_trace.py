"""The load of a model in the trace of its session, and passes that are left out.

Requirements: profiling (PR-52 and PR-53); user needs INIT-6, OPT-3 and PROF-1.
"""

import json
import pathlib
import re
from collections import Counter

import numpy as np
import onnx
import onnx.parser
import pytest
import tenon
from onnx import numpy_helper

DISABLE = "optimization.disable_specified_optimizers"
DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "profiling.md"
X = np.linspace(-2, 2, 64 * 64, dtype=np.float32).reshape(64, 64)

# A function, an If with a constant condition, an Identity, equal constants and sums, a constant
# node, a size that is known, a Swish, an epilogue of a product,
# scalars in a row, a chain of element-wise operators.
GENERAL = """<ir_version: 9, opset_import: ["" : 19, "own" : 1]>
general (float[n, 64] x, float[64, 64] w) => (float[n, 64] y)
<float[1] a = {2}, float[1] b = {2}, float[1] c = {-1}, float range = {3}, float mean = {0.5},
  bool yes = {1}, int64 one = {1}>
{
  same = Identity (x)
  sizes = Shape (same)
  size = Gather (sizes, one)
  real = Cast <to = 1> (size)
  left = Add (same, a)
  right = Add (x, b)
  product = Mul (left, right)
  d = Neg (c)
  divided = Div (product, d)
  scaled = Div (divided, real)
  taken = If (yes) <
    then_branch = then () => (float[n, 64] t) { t = Exp (scaled) },
    else_branch = other () => (float[n, 64] e) { e = Neg (scaled) }
  >
  called = own.Twice (taken)
  s = Sigmoid (called)
  swish = Mul (called, s)
  m = MatMul (swish, w)
  r = Relu (m)
  t = Tanh (r)
  u = Mul (t, x)
  quotient = Div (u, range)
  centered = Sub (quotient, mean)
  normal = Div (centered, range)
  y = Sub (normal, x)
}
<domain: "own", opset_import: ["" : 19]>
Twice (v) => (z) { z = Add (v, v) }
"""

CONVOLUTIONS = """<ir_version: 9, opset_import: ["" : 19]>
convolutions (float[1, 16, 32, 32] x, float[1, 16, 32, 32] other) => (float[1, 16, 32, 32] y)
{
  c1 = Conv <pads = [1, 1, 1, 1]> (x, k1)
  n1 = BatchNormalization (c1, ones, shift, shift, ones)
  r1 = Relu (n1)
  c2 = Conv <pads = [1, 1, 1, 1]> (r1, k2)
  r2 = Relu (c2)
  scaled = Mul (r2, factors)
  shifted = Add (scaled, factors)
  c3 = Conv <pads = [1, 1, 1, 1]> (shifted, k1)
  sum = Add (c3, r1)
  n4 = BatchNormalization (sum, ones, shift, shift, ones)
  r4 = Relu (n4)
  y = Conv <pads = [1, 1, 1, 1]> (r4, k2)
}
"""

QUANTIZED = """<ir_version: 9, opset_import: ["" : 19]>
quantized (float[n, 64] x) => (float[n, 64] y)
<float s = {0.03}, int8 z = {3}, float sw = {0.01}, int8 zw = {0}>
{
  q = QuantizeLinear (x, s, z)
  a = DequantizeLinear (q, s, z)
  b = DequantizeLinear (wq, sw, zw)
  m = MatMul (a, b)
  mq = QuantizeLinear (m, s, z)
  md = DequantizeLinear (mq, s, z)
  g = Sigmoid (md)
  gq = QuantizeLinear (g, s, z)
  gd = DequantizeLinear (gq, s, z)
  p = MatMul (gd, b)
  bias = DequantizeLinear (bq, sw, zw)
  y = Add (p, bias)
}
"""

ATTENTION = """<ir_version: 9, opset_import: ["" : 19]>
attention (float[1, 2, 16, 32] q, float[1, 2, 16, 32] k, float[1, 2, 16, 32] v)
  => (float[1, 2, 16, 32] y)
<float root = {5.656854}>
{
  kt = Transpose <perm = [0, 1, 3, 2]> (k)
  scores = MatMul (q, kt)
  scaled = Div (scores, root)
  weights = Softmax <axis = -1> (scaled)
  y = MatMul (weights, v)
}
"""


def waves(*shape: int, step: float = 0.37) -> np.ndarray:
    count = int(np.prod(shape))
    return np.sin(step * np.arange(1, count + 1)).astype(np.float32).reshape(shape)


def parsed(text: str, **initializers: np.ndarray) -> bytes:
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in initializers.items()
    )
    return model.SerializeToString()


def models() -> dict[str, tuple[bytes, dict]]:
    kernel = waves(16, 16, 3, 3) / 8
    steps = {"q": 0.3, "k": 0.7, "v": 1.1}
    heads = {name: waves(1, 2, 16, 32, step=step) for name, step in steps.items()}
    image = waves(1, 16, 32, 32)
    return {
        "general": (parsed(GENERAL), {"x": X / 4, "w": waves(64, 64) / 8}),
        "convolutions": (
            parsed(
                CONVOLUTIONS,
                k1=kernel,
                k2=-kernel,
                ones=np.full(16, 1.5, np.float32),
                shift=waves(16),
                factors=waves(1, 16, 1, 1),
            ),
            {"x": image, "other": image},
        ),
        "quantized": (
            parsed(
                QUANTIZED,
                wq=(waves(64, 64) * 100).astype(np.int8),
                bq=np.arange(64).astype(np.int8),
            ),
            {"x": X},
        ),
        "attention": (parsed(ATTENTION), heads),
    }


MODELS = models()


def loaded(
    model: bytes | str, folder: pathlib.Path, *disabled: str, **fields: object
) -> tuple[tenon.InferenceSession, list[dict]]:
    """A session and the trace of its load."""
    options = tenon.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "trace")
    options.add_session_config_entry(DISABLE, ";".join(disabled))
    for name, value in fields.items():
        setattr(options, name, value)
    session = tenon.InferenceSession(model, options)
    events = json.loads(pathlib.Path(session.end_profiling()).read_text(encoding="utf-8"))
    return session, [event for event in events if event["cat"] == "Session"]


def is_pass(name: str) -> bool:
    return re.fullmatch(r"([A-Z][A-Za-z]*)+", name) is not None


def changes(events: list[dict]) -> Counter:
    found: Counter = Counter()
    for event in events:
        if is_pass(event["name"]):
            found[event["name"]] += int(event["args"]["changes"])
    return found


def documented(heading: str) -> list[str]:
    """The names in the first column of the table below a heading of docs/profiling.md."""
    part = DOCUMENT.read_text(encoding="utf-8").split(f"{heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)`", part.split("\n### ", 1)[0], re.MULTILINE)


PASSES = documented("### Passes")
PHASES = documented("### The load of a model")


def test_the_load_is_nested_in_phases(tmp_path: pathlib.Path) -> None:
    _, events = loaded(MODELS["general"][0], tmp_path)
    names = [event["name"] for event in events]
    assert names[0] == "model_loading_array"
    (whole,) = [event for event in events if event["name"] == "session_initialization"]
    assert events[0]["ts"] + events[0]["dur"] <= whole["ts"] + 1
    for event in events[1:]:
        assert whole["ts"] <= event["ts"]
        assert event["ts"] + event["dur"] <= whole["ts"] + whole["dur"] + 1, event
    for parent, child in (
        ("general_passes", "ConstantFolding"),
        ("provider_rewrites", "EpilogueFusion"),
        ("planning", "kernel_creation"),
    ):
        outer = next(event for event in events if event["name"] == parent)
        inner = next(event for event in events if event["name"] == child)
        assert outer["ts"] <= inner["ts"] <= outer["ts"] + outer["dur"], (parent, child)
    steps = {name for name in names if not is_pass(name)}
    rare = {"model_loading_uri", "optimized_model_writing"}
    assert steps == set(PHASES) - rare, "docs/profiling.md has each"


def test_a_model_of_a_file_has_the_other_event(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(MODELS["attention"][0])
    _, events = loaded(str(path), tmp_path, optimized_model_filepath=str(tmp_path / "o.onnx"))
    names = [event["name"] for event in events]
    assert names[0] == "model_loading_uri"
    assert "optimized_model_writing" in names


def test_a_load_that_fails_leaves_a_trace(tmp_path: pathlib.Path) -> None:
    """PR-3: the file is there before the model is read."""
    with pytest.raises(Exception, match="PROTOBUF"):
        loaded(b"\x08\x09no model", tmp_path)
    (file,) = tmp_path.iterdir()
    assert [event["name"] for event in json.loads(file.read_text())] == ["model_loading_array"]


def test_passes_say_how_many_nodes_there_are(tmp_path: pathlib.Path) -> None:
    _, events = loaded(MODELS["general"][0], tmp_path)
    by_name: dict[str, list[dict]] = {}
    for event in events:
        by_name.setdefault(event["name"], []).append(event["args"])
    inlining = by_name["function_inlining"][0]
    assert (inlining["nodes_before"], inlining["nodes_after"]) == ("22", "22")
    first = by_name["CommonSubexpressionElimination"][0]
    assert int(first["nodes_before"]) - int(first["nodes_after"]) == int(first["changes"]) == 1
    assert by_name["LayerFusion"][0]["provider"] == "CPUExecutionProvider"
    kernels = by_name["kernel_creation"][0]
    assert int(kernels["kernels"]) <= int(by_name["planning"][0]["steps"])
    assert 0 < len(kernels["slowest"]) <= 5
    times = [entry["us"] for entry in kernels["slowest"]]
    assert times == sorted(times, reverse=True)
    assert "FusedMatMul" in {entry["op_name"] for entry in kernels["slowest"]}


@pytest.mark.parametrize("length", [10, 2000])
def test_the_number_of_events_is_bounded(length: int, tmp_path: pathlib.Path) -> None:
    nodes = [onnx.helper.make_node("Sin", [f"t{i}"], [f"t{i + 1}"]) for i in range(length)]
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4])
        for name in ("t0", f"t{length}")
    ]
    graph = onnx.helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)])
    model.ir_version = 9
    _, events = loaded(model.SerializeToString(), tmp_path)
    assert len(events) < 100


def test_every_pass_is_documented(tmp_path: pathlib.Path) -> None:
    seen = set()
    for model, _ in MODELS.values():
        seen |= set(changes(loaded(model, tmp_path)[1]))
    assert seen == set(PASSES)


def passes_with_changes() -> list[tuple[str, str]]:
    return [
        ("general", name)
        for name in (
            "ShapeFolding",
            "ConstantFolding",
            "IfInlining",
            "Simplification",
            "ConstantSharing",
            "CommonSubexpressionElimination",
            "LayerFusion",
            "ScalarFusion",
            "EpilogueFusion",
            "ElementwiseFusion",
        )
    ] + [
        ("convolutions", "ConvFolding"),
        ("convolutions", "NchwcTransformer"),
        ("convolutions", "NchwcEpilogueFusion"),
        ("quantized", "QDQSelectorActionTransformer"),
        ("quantized", "TableFusion"),
        ("quantized", "DequantizedFolding"),
        ("attention", "AttentionFusion"),
    ]


def test_the_cases_cover_all_passes_but_one() -> None:
    """NhwcTransformer depends on the machine (test_nhwc_layout.py)."""
    assert set(PASSES) - {name for _, name in passes_with_changes()} == {"NhwcTransformer"}


@pytest.mark.parametrize(("model", "name"), passes_with_changes())
def test_each_pass_can_be_left_out(model: str, name: str, tmp_path: pathlib.Path) -> None:
    content, feeds = MODELS[model]
    session, events = loaded(content, tmp_path)
    assert changes(events)[name] > 0
    without, fewer = loaded(content, tmp_path, name)
    assert name not in changes(fewer)
    expected, got = session.run(None, feeds)[0], without.run(None, feeds)[0]
    tolerance = 0.1 if model == "quantized" else 1e-4
    np.testing.assert_allclose(got, expected, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("model", list(MODELS))
def test_all_passes_can_be_left_out(model: str, tmp_path: pathlib.Path) -> None:
    content, feeds = MODELS[model]
    session, events = loaded(content, tmp_path, *PASSES)
    assert not changes(events)
    (got,) = session.run(None, feeds)
    plain = tenon.SessionOptions()
    plain.graph_optimization_level = tenon.GraphOptimizationLevel.ORT_DISABLE_ALL
    (expected,) = tenon.InferenceSession(content, plain).run(None, feeds)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
