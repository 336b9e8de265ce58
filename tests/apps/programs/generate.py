"""Generates tokens with onnxruntime-genai.

Usage: generate.py RESULTS MODEL METHOD...
"""

import sys

import numpy as np
import onnxruntime_genai
from report import save

model = onnxruntime_genai.Model(sys.argv[2])
prompt = np.array([1, 3, 70, 19, 5], np.int32)


def generate(**search: object) -> np.ndarray:
    parameters = onnxruntime_genai.GeneratorParams(model)
    parameters.set_search_options(max_length=40, min_length=40, **search)
    generator = onnxruntime_genai.Generator(model, parameters)
    generator.append_tokens(prompt)
    while not generator.is_done():
        generator.generate_next_token()
    return np.array(generator.get_sequence(0))


METHODS = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True, "top_k": 8, "temperature": 0.7, "random_seed": 1},
    "beams": {"do_sample": False, "num_beams": 3},
}
save(**{method: generate(**METHODS[method]) for method in sys.argv[3:]})
