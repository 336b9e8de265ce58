"""Models that Tenon reads and writes again are equal to the originals for the onnx package."""

import os
import subprocess
from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx")
np = pytest.importorskip("numpy")

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "build" / "release" / "tests" / "ir" / "rewrite_model"
FOLDER = Path(os.environ.get("TENON_MODELS") or ROOT.parent / "shared" / "models")
# Has no opset import, so it is refused.
REFUSED = {"super_resolution.onnx"}
MODELS = sorted(path for path in FOLDER.glob("*/*.onnx") if path.name not in REFUSED)

pytestmark = [
    pytest.mark.skipif(not TOOL.exists(), reason="rewrite_model is not built"),
    pytest.mark.skipif(not MODELS, reason="TENON_MODELS names no folder of models"),
]


def rewrite(source, target, *options):
    subprocess.run([TOOL, source, target, *options], check=True)
    return onnx.load(target)


def tensor(proto, folder):
    array = onnx.numpy_helper.to_array(proto, str(folder))
    return (
        proto.data_type,
        array.shape,
        array.tobytes() if array.dtype != object else array.tolist(),
    )


def attribute(proto, folder):
    value = onnx.helper.get_attribute_value(proto)
    if proto.type == onnx.AttributeProto.TENSOR:
        value = tensor(value, folder)
    elif proto.type == onnx.AttributeProto.GRAPH:
        value = graph(value, folder)
    return proto.name, proto.type, value


def node(proto, folder):
    attributes = sorted((attribute(a, folder) for a in proto.attribute), key=lambda a: a[0])
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    fields = (proto.name, proto.op_type, domain, proto.doc_string)
    return fields, list(proto.input), list(proto.output), attributes


def value_types(values):
    return {value.name: value.type.SerializeToString(deterministic=True) for value in values}


def graph(proto, folder):
    initializers = {t.name: tensor(t, folder) for t in proto.initializer}
    return {
        "name": proto.name,
        "nodes": [node(n, folder) for n in proto.node],
        "initializers": initializers,
        # Before IR version 4, the initializers among the inputs come last when written.
        "inputs": [v.name for v in proto.input if v.name not in initializers],
        "input types": value_types(proto.input),
        "outputs": [v.name for v in proto.output],
        "output types": value_types(proto.output),
    }


def model(proto, folder):
    return {
        "ir": proto.ir_version,
        "opsets": {
            (o.domain if o.domain != "ai.onnx" else "", o.version) for o in proto.opset_import
        },
        "producer": (
            proto.producer_name,
            proto.producer_version,
            proto.domain,
            proto.model_version,
            proto.doc_string,
        ),
        "metadata": {m.key: m.value for m in proto.metadata_props},
        "graph": graph(proto.graph, folder),
    }


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_model_is_the_same(path, tmp_path):
    written = rewrite(path, tmp_path / "model.onnx")
    assert model(written, tmp_path) == model(onnx.load(path), path.parent)


@pytest.mark.parametrize("path", MODELS[:6], ids=lambda path: path.name)
def test_model_with_external_data_is_the_same(path, tmp_path):
    written = rewrite(path, tmp_path / "model.onnx", "weights.bin")
    assert (tmp_path / "weights.bin").stat().st_size > 64
    expected = model(onnx.load(path), path.parent)
    assert model(written, tmp_path) == expected
    # And Tenon reads its own external data.
    inline = rewrite(tmp_path / "model.onnx", tmp_path / "inline.onnx")
    assert model(inline, tmp_path) == expected
