"""Every family of generated benchmark models is valid ONNX and runs, at sizes fit for a test."""

import build_models
import numpy as np
import onnx
import pytest
from models import small, transformers

TINY = transformers.Encoder(layers=2, width=32, heads=2, inner=64, vocabulary=100, positions=16)

SMALL_MODELS = {
    name: build_models.MODELS[name]
    for name in ("mobilenet_v3_small", "squeezenet", "gru_2_256", "mlp_tiny", "identity_tiny")
}


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_small_models_pass_their_check(tmp_path, name):
    (path,) = build_models.build_missing(tmp_path, [name])
    build_models.check(path)


@pytest.mark.parametrize("opset", [13, 17])
def test_encoder_ignores_masked_tokens(opset):
    session = build_models.onnxruntime.InferenceSession(
        transformers.bert("tiny", TINY, opset, pooler=True).SerializeToString()
    )
    feeds = {
        "input_ids": np.array([[5, 6, 7, 8]]),
        "attention_mask": np.array([[1, 1, 1, 0]]),
        "token_type_ids": np.zeros((1, 4), np.int64),
    }
    before = session.run(["last_hidden_state"], feeds)[0]
    feeds["input_ids"] = np.array([[5, 6, 7, 99]])
    after = session.run(["last_hidden_state"], feeds)[0]
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert not np.array_equal(before[:, 3], after[:, 3])


@pytest.mark.parametrize("op_type, directions", [("LSTM", 1), ("LSTM", 2), ("GRU", 1)])
def test_recurrent_networks_keep_the_batch_first(op_type, directions):
    model = small.recurrent("r", op_type, 3, 4, layers=2, bidirectional=directions == 2)
    onnx.checker.check_model(model, full_check=True)
    session = build_models.onnxruntime.InferenceSession(model.SerializeToString())
    x = np.random.default_rng(1).standard_normal((2, 5, 3)).astype(np.float32)
    both = session.run(None, {"input": x})[0]
    assert both.shape == (2, 5, 4 * directions)
    alone = session.run(None, {"input": x[1:]})[0]
    np.testing.assert_allclose(both[1:], alone, atol=1e-6)


def test_the_same_name_gives_the_same_weights():
    first, second = (small.perceptron("mlp", (4, 8, 2)) for _ in range(2))
    assert first == second
    assert small.perceptron("other", (4, 8, 2)) != first
