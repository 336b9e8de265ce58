"""Wrong models and calls: one message for each, the same in C, Python and JavaScript."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
import tenon

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/errors"))

pytest.importorskip("tomllib")  # of Python 3.11
import error_cases  # noqa: E402

CASES = error_cases.read()
ERRORS = ROOT / "tests/errors"
BUILD = pathlib.Path(os.environ.get("TENON_BUILD", ROOT / "build/release"))
PACKAGES = ROOT / "build/node"


def rows_for(client: str) -> list[error_cases.Case]:
    return [case for case in CASES if client in case.clients]


def in_rows(client: str):
    rows = rows_for(client)
    return pytest.mark.parametrize(
        ("number", "case"), list(enumerate(rows)), ids=[case.name for case in rows]
    )


def own_folder(parent: pathlib.Path, number: int) -> pathlib.Path:
    folder = parent / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_the_table_has_many_rows_that_differ() -> None:
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({case.text for case in CASES}) > len(CASES) - 5
    for case in CASES:
        assert "/src/" not in case.text, case.name
        assert case.text.count("Non-zero status code") <= 1, case.name


@in_rows("python")
def test_python_says_so_once(number: int, case: error_cases.Case, tmp_path, capfd) -> None:
    options = tenon.SessionOptions()
    for key, value in case.options.items():
        options.add_session_config_entry(key, value)
    run_options = tenon.RunOptions()
    run_options.terminate = case.stop
    for key, value in case.run.items():
        run_options.add_run_config_entry(key, value)
    with pytest.raises(Exception) as caught:
        session = tenon.InferenceSession(case.source(tmp_path), options)
        assert case.feeds is not None, "loading was to fail"
        session.run(case.outputs or None, case.arrays(), run_options)
    text = str(caught.value)
    if not isinstance(caught.value, ValueError):  # which onnxruntime raises for missing inputs
        prefix, code, _, text = text.split(" : ", 3)
        assert (prefix, int(code)) == ("[ONNXRuntimeError]", case.code)
    assert text == case.text_in(tmp_path)
    assert capfd.readouterr() == ("", "")


def write_feed(path: pathlib.Path, array: np.ndarray) -> list[str]:
    """Writes the elements; gives type, rank and dimensions as the C client reads them."""
    if array.dtype == np.object_:
        path.write_bytes(b"".join(text.encode() + b"\0" for text in array.flat))
        number = onnx.TensorProto.STRING
    else:
        path.write_bytes(array.tobytes())
        number = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return [str(int(number)), str(array.ndim), *map(str, array.shape), str(path)]


def outputs_of(case: error_cases.Case) -> list[str]:
    model = onnx.load_model_from_string(case.content())
    return case.outputs or [output.name for output in model.graph.output]


def script_lines(case: error_cases.Case, folder: pathlib.Path) -> list[list[str]]:
    """The lines of a case for error_client.c."""
    source = case.source(folder)
    lines = [["case"], ["path", source] if isinstance(source, str) else ["model", ""]]
    if isinstance(source, bytes):
        lines[-1][1] = str(folder / "bytes")
        (folder / "bytes").write_bytes(source)
    lines += [["option", *entry] for entry in case.options.items()]
    lines += [["run", *entry] for entry in case.run.items()]
    lines += [["stop"]] if case.stop else []
    if case.feeds is None:
        return [*lines, ["load"], ["go"]]
    for i, (name, array) in enumerate(case.arrays().items()):
        lines.append(["feed", name, *write_feed(folder / f"feed{i}", array)])
    lines += [["fetch", name] for name in outputs_of(case)]
    return [*lines, ["go"]]


@pytest.fixture(scope="module")
def c_lines(tmp_path_factory) -> tuple[pathlib.Path, list[str]]:
    """The folder of the cases, and the output of the C client."""
    folder = tmp_path_factory.mktemp("c")
    lines = []
    for number, case in enumerate(rows_for("c")):
        lines += script_lines(case, own_folder(folder, number))
    script = folder / "script"
    script.write_text("".join("\t".join(line) + "\n" for line in lines))
    client = BUILD / "tests/capi/error_client"
    done = subprocess.run([client, script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return folder, done.stdout.splitlines()


@in_rows("c")
def test_c_says_so_once(number: int, case: error_cases.Case, c_lines) -> None:
    folder, lines = c_lines
    assert lines[number] == f"{case.code}\t{case.text_in(folder / str(number))}"


def javascript_feed(array: np.ndarray) -> dict[str, object]:
    names = {"object": "string"}
    return {
        "type": names.get(str(array.dtype), str(array.dtype)),
        "dims": list(array.shape),
        "values": array.flatten().tolist(),
    }


def nested(options: dict[str, str]) -> dict[str, object]:
    """Config entries in onnxruntime-node's form: {"session": {"memory_limit": ...}}."""
    tree: dict[str, dict] = {}
    for key, value in options.items():
        *parents, last = key.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return tree


@pytest.fixture(scope="module")
def node_messages(tmp_path_factory) -> tuple[pathlib.Path, list[str | None]]:
    """The folder of the cases, and the messages in JavaScript."""
    node = shutil.which("node")
    if node is None or not (PACKAGES / "node_modules/onnxruntime-node/bin").is_dir():
        pytest.skip("needs Node and onnxruntime-node; ./dev node installs them")
    sys.path.insert(0, str(ROOT / "tests/node"))
    import run_client  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("node")
    run_client.copy_package(PACKAGES, BUILD / "src/capi/libtenon.so", folder)
    cases = []
    for number, case in enumerate(rows_for("node")):
        own = own_folder(folder, number)
        source = case.source(own)
        is_path = isinstance(source, str)
        if not is_path:
            (own / "bytes").write_bytes(source)
            source = str(own / "bytes")
        feeds = {name: javascript_feed(array) for name, array in case.arrays().items()}
        cases.append(
            {
                "source": source,
                "is_path": is_path,
                "options": nested(case.options),
                "feeds": None if case.feeds is None else feeds,
                "outputs": case.outputs,
            }
        )
    (folder / "cases.json").write_text(json.dumps(cases))
    command = [node, ERRORS / "error_client.mjs", folder, folder / "cases.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return folder, json.loads(done.stdout)


@in_rows("node")
def test_javascript_says_so_once(number: int, case: error_cases.Case, node_messages) -> None:
    folder, messages = node_messages
    assert messages[number] == case.text_in(folder / str(number))
