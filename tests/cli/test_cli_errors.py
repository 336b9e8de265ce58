"""Every mistake gets a text that names it, and exit code 1 (files, model) or 2 (command line)."""

import struct

import cli_models
import numpy as np
import pytest
from onnx import TensorProto


@pytest.fixture
def files(tmp_path):
    """A folder of models and files, good and bad."""
    cli_models.identity(tmp_path / "m.onnx", ["batch", 3])
    cli_models.add(tmp_path / "add.onnx", [2])
    cli_models.identity(tmp_path / "tokens.onnx", [1, 4], TensorProto.INT64)
    cli_models.identity(tmp_path / "image.onnx", [1, 5, 8, 8])
    np.save(tmp_path / "good.npy", np.zeros((2, 3), np.float32))
    np.save(tmp_path / "double.npy", np.zeros((2, 3)))
    np.save(tmp_path / "rank.npy", np.zeros(3, np.float32))
    np.save(tmp_path / "axis.npy", np.zeros((2, 4), np.float32))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    np.save(tmp_path / "fields.npy", np.zeros(2, [("a", "f4")]))
    good = (tmp_path / "good.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(good[:-1])
    (tmp_path / "head.npy").write_bytes(good[:9])
    (tmp_path / "huge.npy").write_bytes(good.replace(b"(2, 3), }", b"(2, 9999999999999999999), }"))
    (tmp_path / "large.npy").write_bytes(
        good.replace(b"(2, 3), }", b"(99999999999, 99999999999), }")
    )
    np.savez(tmp_path / "other.npz", a=np.zeros(3), b=np.zeros(3))
    archive = bytearray((tmp_path / "other.npz").read_bytes())
    archive[200] ^= 1
    (tmp_path / "damaged.npz").write_bytes(archive)
    (tmp_path / "cut.npz").write_bytes(archive[:100])
    (tmp_path / "text.txt").write_text("hello\n")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n1234")
    head = struct.pack("<HHIIHH", 7, 1, 8000, 8000, 1, 8)  # mu-law
    (tmp_path / "bytes.wav").write_bytes(
        b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", 16) + head + b"data\0\0\0\0"
    )
    (tmp_path / "none.wav").write_bytes(b"RIFF\0\0\0\0WAVE")
    (tmp_path / "cut.onnx").write_bytes((tmp_path / "m.onnx").read_bytes()[:-3])


# arguments, exit code, what stderr holds
CASES = [
    ("run", 2, ["MODEL is required"]),
    ("", 2, ["A subcommand is required"]),
    ("ran m.onnx", 2, ["no command 'ran'", "did you mean 'run'?"]),
    ("run m.onnx --inptu x=good.npy", 2, ["--inptu"]),
    ("run none.onnx", 1, ["none.onnx"]),
    ("run text.txt", 1, ["text.txt"]),
    ("run empty", 1, ["empty"]),
    ("run cut.onnx", 1, ["cut.onnx", "byte"]),
    ("inspect none.onnx", 1, ["none.onnx"]),
    ("inspect cut.onnx", 1, ["cut.onnx", "byte"]),
    ("bench none.onnx", 1, ["none.onnx"]),
    ("run m.onnx", 2, ["input 'x' (float [batch, 3]) has no value", "--input"]),
    ("run m.onnx --input x=none.npy", 1, ["'none.npy': No such file"]),
    ("run add.onnx --input lefft=zeros", 2, ["'lefft'", "did you mean 'left'?", "left, right"]),
    ("run add.onnx --input good.npy", 2, ["which of the 2 inputs", "good.npy"]),
    ("run add.onnx --input left=zeros --input left=1", 2, ["'left' is given twice"]),
    ("run m.onnx --input double.npy", 1, ["float [batch, 3]", "double [2, 3]", "double.npy"]),
    ("run m.onnx --input rank.npy", 1, ["float [batch, 3]", "float [3]"]),
    ("run m.onnx --input axis.npy", 1, ["float [batch, 3]", "float [2, 4]"]),
    ("run m.onnx --input objects.npy", 1, ["objects.npy", "O"]),
    ("run m.onnx --input fields.npy", 1, ["fields.npy", "structured"]),
    ("run m.onnx --input cut.npy", 1, ["cut.npy", "expected 6 elements", "got 5"]),
    ("run m.onnx --input head.npy", 1, ["head.npy", "cut-off"]),
    ("run m.onnx --input huge.npy", 1, ["huge.npy", "shape"]),
    ("run m.onnx --input large.npy", 1, ["too large"]),
    ("run m.onnx --input other.npz", 2, ["no input 'a'"]),
    ("run m.onnx --input x=other.npz", 1, ["no entry is named 'x'", "a, b"]),
    ("run m.onnx --input x=damaged.npz", 1, ["damaged.npz"]),
    ("run m.onnx --input x=cut.npz", 1, ["cut.npz", "damaged"]),
    ("run m.onnx --input text.txt", 1, ["expected a .npy, .npz, PNG, JPEG or WAV file"]),
    ("run m.onnx --input empty", 1, ["expected a .npy, .npz, PNG, JPEG or WAV file"]),
    ("run m.onnx --input .", 1, ["'.': Is a directory"]),
    ("run m.onnx --input bad.png", 1, ["bad.png", "cannot be read"]),
    ("run image.onnx --input bad.png", 1, ["1 or 3 channels", "takes 5"]),
    ("run m.onnx --input bytes.wav", 1, ["bytes.wav", "format 7 of 8 bits"]),
    ("run m.onnx --input none.wav", 1, ["none.wav", "without sound"]),
    ("run tokens.onnx --input bytes.wav", 1, ["int64 [1, 4]", "sound"]),
    ("run m.onnx --input bad.png --resize 4", 2, ["--resize", "'4'"]),
    ("run m.onnx --input bad.png --scale 1/0", 2, ["--scale", "1/0"]),
    ("run m.onnx --input bad.png --mean 1,2,3", 2, ["--mean", "expected 1 or 1 numbers, got 3"]),
    ("run m.onnx --input bad.png --std 0", 2, ["--std"]),
    ("run m.onnx --input random --layout nwhc", 2, ["--layout", "nwhc"]),
    ("run m.onnx --input random --dim bach=2", 2, ["'bach'", "did you mean 'batch'?"]),
    ("run m.onnx --input random --dim batch", 2, ["NAME=SIZE", "'batch'"]),
    ("run m.onnx --input random --dim batch=-2", 2, ["NAME=SIZE", "batch=-2"]),
    ("inspect m.onnx --dim bach=2", 2, ["'bach'", "did you mean 'batch'?"]),
    ("run m.onnx --input random --threads -1", 2, ["--threads"]),
    ("run m.onnx --input random --top-k 0", 2, ["--top-k"]),
    ("run m.onnx --input random --labels none.txt", 1, ["none.txt"]),
    ("run m.onnx --input random --labels empty", 1, ["empty", "label"]),
    ("run m.onnx --input random --labels text.txt", 1, ["text.txt", "got 1", "'y' [1, 3]"]),
    ("run m.onnx --input random --output z=a.npy", 2, ["no output 'z'", "y"]),
    ("run m.onnx --input random --output none/y.npy", 1, ["none/y.npy"]),
    ("run m.onnx --input random --output good.npy/x", 1, ["good.npy/x"]),
    ("bench m.onnx --runs 0", 2, ["--runs"]),
    ("bench m.onnx --runs 5 --seconds 1", 2, ["--runs", "--seconds"]),
]


@pytest.mark.parametrize(("arguments", "code", "texts"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.usefixtures("files")
def test_mistake_is_named(tenon, arguments, code, texts):
    result = tenon(*arguments.split())
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    for text in texts:
        assert text in result.stderr
