"""Programs that read pictures and find speech, from Python."""

import pathlib

import pytest
from running import compare, folder_of, need

# The package of a program, and the tolerance of the numbers that it finds.
PROGRAMS = {
    "rapid_ocr.py": ("rapidocr", 1e-4),
    "rapid_ocr_onnxruntime.py": ("rapidocr_onnxruntime", 1e-4),
    "dddd_ocr.py": ("ddddocr", 0),
    "faster_whisper_vad.py": ("faster_whisper", 1e-4),
    "silero.py": ("silero_vad", 1e-4),
    "extensions.py": ("onnxruntime_extensions", 1e-5),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_gives_the_same_results(
    program: str, tmp_path: pathlib.Path, packages: pathlib.Path
) -> None:
    package, rtol = PROGRAMS[program]
    need(package)
    compare(tmp_path, program, path=packages, rtol=rtol)


def test_sherpa_runs_on_the_library(tmp_path: pathlib.Path, packages: pathlib.Path) -> None:
    """Its module was linked with libonnxruntime.so of another release, which ours replaces."""
    sherpa, silero = folder_of("sherpa_onnx"), folder_of("silero_vad")
    theirs = sherpa / "lib" / "libonnxruntime.so"
    for part in sherpa.parent.glob("sherpa_onnx*"):
        (tmp_path / part.name).symlink_to(part)
    (tmp_path / "sherpa_onnx").unlink()
    ours = tmp_path / "sherpa_onnx"
    (ours / "lib").mkdir(parents=True)
    for file in (*sherpa.glob("*.py"), *sherpa.glob("lib/*.so")):
        if file != theirs:
            (ours / file.relative_to(sherpa)).write_bytes(file.read_bytes())
    (ours / "lib" / theirs.name).symlink_to(packages / "tenon" / "libtenon.so.1")
    compare(tmp_path, "sherpa_vad.py", silero / "data" / "silero_vad.onnx", path=tmp_path)
