"""Runs models with custom operators of onnxruntime-extensions: text, tokens, pictures, sound."""

import io
import wave

import numpy as np
import onnxruntime
import onnxruntime_extensions
from onnx import TensorProto, helper
from report import picture, png, save, sounds

TEXT, IMAGES = "ai.onnx.contrib", "com.microsoft.extensions"
STRING, INT64, FLOAT, UINT8 = (
    TensorProto.STRING,
    TensorProto.INT64,
    TensorProto.FLOAT,
    TensorProto.UINT8,
)
TYPES = {"O": STRING, "U": STRING, "l": INT64, "f": FLOAT, "B": UINT8, "?": TensorProto.BOOL}

options = onnxruntime.SessionOptions()
options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
found = {}


def run(operator: str, domain: str, outputs: list[int], *inputs: np.ndarray, **attributes) -> None:
    """Runs a model of one node, and keeps its results."""
    feeds = {f"x{i}": value for i, value in enumerate(inputs)}
    names = [f"y{i}" for i in range(len(outputs))]
    graph = helper.make_graph(
        [helper.make_node(operator, list(feeds), names, domain=domain, **attributes)],
        "one_node",
        [
            helper.make_tensor_value_info(name, TYPES[value.dtype.char], [None] * value.ndim)
            for name, value in feeds.items()
        ],
        [
            helper.make_tensor_value_info(*output, None)
            for output in zip(names, outputs, strict=True)
        ],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    for name, value in zip(names, session.run(None, feeds), strict=True):
        found[f"{operator}_{name}"] = value.astype(str) if value.dtype == object else value


words = np.array(["Hello there", "ÄÖü, you", ""])
run("StringUpper", TEXT, [STRING], words)
run("StringLength", TEXT, [INT64], words)
run("StringSplit", TEXT, [INT64, STRING, INT64], words, np.array([" ,"]), np.array([True]))
run("StringRegexReplace", TEXT, [STRING], words, np.array([r"([a-z]+)e"]), np.array([r"<\1>"]))
vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "the", "##re", "you", ","]
run(
    "BertTokenizer",
    TEXT,
    [INT64, INT64, INT64],
    words[:1],
    vocab_file="\n".join(vocabulary),
    do_lower_case=1,
)
encoded = np.frombuffer(png(picture("A picture")), np.uint8)
run("DecodeImage", IMAGES, [UINT8], encoded)
run("EncodeImage", IMAGES, [UINT8], picture("B"), format="png")
sound = io.BytesIO()
with wave.open(sound, "wb") as file:
    file.setnchannels(1)
    file.setsampwidth(2)
    file.setframerate(16000)
    file.writeframes((sounds(1) * 8000).astype("<i2").tobytes())
run("AudioDecoder", TEXT, [FLOAT], np.frombuffer(sound.getvalue(), np.uint8)[np.newaxis])
run(
    "StftNorm",
    TEXT,
    [FLOAT],
    sounds(1)[np.newaxis],
    np.array(400),
    np.array(160),
    np.hanning(400).astype(np.float32),
    np.array(400),
)
try:
    run("NoSuchOperator", TEXT, [STRING], words)
except Exception as error:  # whichever class of errors the runtime has
    found["no_such_operator"] = type(error).__name__
save(**found)
