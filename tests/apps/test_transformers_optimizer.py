"""onnxruntime.transformers of the real package, on Tenon."""

import pathlib

import pytest
from running import compare, need, run


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    need("torch", "transformers")
    folder = tmp_path_factory.mktemp("exported")
    run("export.py", folder)
    return folder


FUSED = {
    "bert": {"Attention 2", "EmbedLayerNormalization 1", "SkipLayerNormalization 4", "BiasGelu 2"},
    "gpt2": {"FastGelu 2", "SkipLayerNormalization 4"},
    "t5": {"SkipSimplifiedLayerNormalization 10"},
}


# At level 1 the optimizer begins with what the runtime saves as its optimized model.
@pytest.mark.parametrize(
    "name, level",
    [("bert", 0), ("bert", 1), ("gpt2", 0), ("gpt2", 1), ("t5", 0), ("t5", 1)],
)
def test_optimizes_and_runs(
    name: str, level: int, tmp_path: pathlib.Path, exported: pathlib.Path, packages: pathlib.Path
) -> None:
    got = compare(tmp_path, "optimize.py", exported / f"{name}.onnx", name, level, path=packages)
    assert set(got["fused"]) >= FUSED[name]
