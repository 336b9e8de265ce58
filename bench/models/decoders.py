"""A decoder of Llama-3.2-1B's shapes, in the form of onnxruntime-genai's models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

CONTRIB = "com.microsoft"


@dataclass(frozen=True)
class Decoder:
    layers: int = 16
    width: int = 2048
    heads: int = 32
    kv_heads: int = 8
    depth: int = 64
    inner: int = 8192
    vocabulary: int = 32000
    positions: int = 4096


class DecoderWriter:
    """Writes a float16 model with its weights beside it; with `four_bits` those of the layers are
    MatMulNBits's. Weights repeat a block of random numbers: a gigabyte of them takes a while."""

    def __init__(self, path: Path, sizes: Decoder, four_bits: bool):
        self.path, self.sizes, self.four_bits = path, sizes, four_bits
        random = np.random.default_rng(0)
        self.noise = (random.standard_normal(1 << 21) * 0.02).astype(np.float16)
        self.packed = random.integers(0, 256, 1 << 21, dtype=np.uint8)
        self.scales = random.uniform(0.001, 0.004, 1 << 18).astype(np.float16)
        self.nodes: list = []
        self.constants: list = []
        self.data = path.with_suffix(".data").open("wb")

    def weight(self, name: str, shape: tuple, source: np.ndarray, data_type: int) -> str:
        tensor = TensorProto(name=name, dims=shape, data_type=data_type)
        tensor.data_location = TensorProto.EXTERNAL
        self.data.seek(-(-self.data.tell() // 4096) * 4096)
        values = np.resize(np.roll(source, len(self.constants)), int(np.prod(shape)))
        entries = {
            "location": Path(self.data.name).name,
            "offset": self.data.tell(),
            "length": values.nbytes,
        }
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=str(value))
        self.data.write(values.tobytes())
        self.constants.append(tensor)
        return name

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def op(self, op: str, inputs: list, outputs: list | None = None, **attributes) -> str:
        name = f"{op}_{len(self.nodes)}"
        outputs = outputs or [f"{name}_y"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, **attributes))
        return outputs[0]

    def linear(self, x: str, inputs: int, outputs: int, name: str) -> str:
        if not self.four_bits:
            weight = self.weight(name, (inputs, outputs), self.noise, TensorProto.FLOAT16)
            return self.op("MatMul", [x, weight])
        shape = (outputs, inputs // 32, 16)
        packed = self.weight(f"{name}.packed", shape, self.packed, TensorProto.UINT8)
        count = outputs * inputs // 32
        scales = self.weight(f"{name}.scales", (count,), self.scales, TensorProto.FLOAT16)
        attributes: dict[str, Any] = {
            "K": inputs,
            "N": outputs,
            "bits": 4,
            "block_size": 32,
            "domain": CONTRIB,
        }
        return self.op("MatMulNBits", [x, packed, scales], **attributes)

    def norm(self, x: str, skip: str) -> tuple[str, str]:
        """The normalized sum, and the sum."""
        scale = self.constant(f"scale_{len(self.nodes)}", np.ones(self.sizes.width, np.float16))
        outputs = [f"norm_{len(self.nodes)}", "", "", f"sum_{len(self.nodes)}"]
        inputs = [x, skip, scale]
        attributes: dict[str, Any] = {"epsilon": 1e-5, "domain": CONTRIB}
        self.op("SkipSimplifiedLayerNormalization", inputs, outputs, **attributes)
        return outputs[0], outputs[3]

    def cache_arguments(self) -> list[str]:
        """The lengths, the total length, and the tables of the rotary embedding."""
        s = self.sizes
        half = s.depth // 2
        angles = np.outer(np.arange(s.positions), 10000.0 ** -(np.arange(half) / half))
        axis = self.constant("axis", np.array([1]))
        mask_sum = self.op("ReduceSum", ["attention_mask", axis], keepdims=0)
        last = self.op("Sub", [mask_sum, axis])
        lengths = self.op("Cast", [last], to=TensorProto.INT32)
        total = self.op("Gather", [self.op("Shape", ["attention_mask"]), axis], axis=0)
        total = self.op("Cast", [total], to=TensorProto.INT32)
        cosines = self.constant("cosines", np.cos(angles).astype(np.float16))
        sines = self.constant("sines", np.sin(angles).astype(np.float16))
        return [lengths, total, cosines, sines]

    def write(self) -> None:
        s = self.sizes
        cache = self.cache_arguments()
        table = self.weight("embed", (s.vocabulary, s.width), self.noise, TensorProto.FLOAT16)
        x = self.op("Gather", [table, "input_ids"])
        first = self.constant("first_scale", np.ones(s.width, np.float16))
        h = self.op("SimplifiedLayerNormalization", [x, first], epsilon=1e-5, axis=-1)
        for i in range(s.layers):
            q = self.linear(h, s.width, s.heads * s.depth, f"{i}.q")
            k = self.linear(h, s.width, s.kv_heads * s.depth, f"{i}.k")
            v = self.linear(h, s.width, s.kv_heads * s.depth, f"{i}.v")
            caches = [f"past_key_values.{i}.key", f"past_key_values.{i}.value"]
            presents = [f"present.{i}.key", f"present.{i}.value"]
            attended = self.op(
                "GroupQueryAttention",
                [q, k, v, *caches, *cache],
                [f"attended_{i}", *presents],
                num_heads=s.heads,
                kv_num_heads=s.kv_heads,
                do_rotary=1,
                domain=CONTRIB,
            )
            h, x = self.norm(x, self.linear(attended, s.heads * s.depth, s.width, f"{i}.o"))
            gate = self.linear(h, s.width, s.inner, f"{i}.gate")
            up = self.linear(h, s.width, s.inner, f"{i}.up")
            gated = self.op("Mul", [gate, self.op("Sigmoid", [gate])])
            down = self.linear(self.op("Mul", [gated, up]), s.inner, s.width, f"{i}.down")
            h, x = self.norm(x, down)
        head = self.weight("head", (s.width, s.vocabulary), self.noise, TensorProto.FLOAT16)
        self.op("MatMul", [h, head], ["logits"])
        self.data.close()
        self.path.write_bytes(self.model())

    def model(self) -> bytes:
        s, half = self.sizes, TensorProto.FLOAT16
        info = helper.make_tensor_value_info
        inputs = [
            info("input_ids", TensorProto.INT64, ["batch", "sequence"]),
            info("attention_mask", TensorProto.INT64, ["batch", "total"]),
        ]
        outputs = [info("logits", half, ["batch", "sequence", s.vocabulary])]
        for i in range(s.layers):
            for kind in ("key", "value"):
                dims: list[str | int | None] = ["batch", s.kv_heads, "past", s.depth]
                inputs.append(info(f"past_key_values.{i}.{kind}", half, dims))
                dims = ["batch", s.kv_heads, "all", s.depth]
                outputs.append(info(f"present.{i}.{kind}", half, dims))
        graph = helper.make_graph(self.nodes, "decoder", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        return model.SerializeToString()


def write_decoder(path: Path, four_bits: bool, sizes: Decoder | None = None) -> None:
    DecoderWriter(path, sizes or Decoder(), four_bits).write()
