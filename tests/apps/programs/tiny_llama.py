"""Makes a decoder with few, random weights by the model builder of onnxruntime-genai.

Usage: tiny_llama.py FOLDER PRECISION
"""

import pathlib
import runpy
import sys

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

folder, precision = pathlib.Path(sys.argv[1]), sys.argv[2]
words = ["<unk>", "<s>", "</s>", *(f"word{i}" for i in range(125))]
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=len(words),
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=128,
    initializer_range=0.2,  # so that the logits differ
    bos_token_id=1,
    eos_token_id=2,
)
LlamaForCausalLM(config).save_pretrained(folder / "torch")
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
).save_pretrained(folder / "torch")

sys.argv = ["builder", "-i", str(folder / "torch"), "-o", str(folder / "onnx")]
sys.argv += ["-p", precision, "-e", "cpu", "-c", str(folder / "cache")]
runpy.run_module("onnxruntime_genai.models.builder", run_name="__main__")
