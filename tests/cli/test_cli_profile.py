"""tenon profile: its trace, its figures, and its page as a browser shows it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import cli_models
import numpy as np
import pytest
from onnx import helper, numpy_helper


@pytest.fixture
def model(tmp_path: Path) -> str:
    """y = Softmax(Relu(x * w) * v), with names that must be escaped."""
    weights = np.random.default_rng(0).standard_normal((256, 512), np.float32)
    return cli_models.save(
        tmp_path / "perceptron.onnx",
        [
            helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
            helper.make_node("Relu", ["a"], ["b"], name='relu </script> "of the first"'),
            helper.make_node("MatMul", ["b", "v"], ["c"], name="second & <b>layer</b>"),
            helper.make_node("Softmax", ["c"], ["y"], name="softmax"),
        ],
        [cli_models.value("x", ["batch", 256])],
        [cli_models.value("y", ["batch", 256])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(weights.T.copy(), "v")],
    )


def test_writes_a_trace_of_the_whole_session(tenon, tmp_path, model):
    text = tenon.ok("profile", model, "--dim", "batch=64", "--runs", "3")
    assert "MatMul" in text
    assert "perceptron.trace.json" in text
    trace = json.loads((tmp_path / "perceptron.trace.json").read_text(encoding="utf-8"))
    names = [event["name"] for event in trace]
    assert names.count("model_run") == 3
    for name in ("session_initialization", "session_teardown", "provider_release"):
        assert name in names
    assert any(event["cat"] == "Memory" for event in trace)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "perceptron.onnx",
        "perceptron.profile.html",
        "perceptron.trace.json",
    ]


def test_adds_up_what_the_trace_says(tenon, tmp_path, model):
    arguments = ["--dim", "batch=64", "--runs", "4", "--trace", "t.json", "--report", "r.html"]
    profile = tenon.json("profile", model, *arguments)
    assert (profile["trace"], profile["report"]) == ("t.json", "r.html")
    assert profile["inputs"] == [{"name": "x", "type": "float", "shape": [64, 256]}]
    assert len(profile["runs"]) == 4
    assert {run["status"] for run in profile["runs"]} == {"ok"}
    times = profile["run_ms"]
    assert 0 < times["min"] <= times["median"] <= times["max"]

    trace = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    runs = [event for event in trace if event["name"] == "model_run"][1:]
    kernels = [
        event
        for event in trace
        if event["name"].endswith("_kernel_time")
        and any(run["ts"] <= event["ts"] <= run["ts"] + run["dur"] for run in runs)
    ]
    by_operator: dict[str, float] = {}
    for event in kernels:
        operator = event["args"]["op_name"]
        by_operator[operator] = by_operator.get(operator, 0) + event["dur"] / 1e3 / len(runs)
    assert {one["op_type"]: one["ms"] for one in profile["operators"]} == pytest.approx(by_operator)
    products = [one for one in profile["operators"] if "MatMul" in one["op_type"]]
    flops = 2 * 2 * 64 * 256 * 512
    assert sum(one["gflops"] * one["ms"] for one in products) == pytest.approx(
        flops / 1e6, rel=0.01
    )
    assert sum(one["share"] for one in profile["operators"]) <= 1.01
    assert profile["operators"] == sorted(
        profile["operators"], key=lambda one: one["ms"], reverse=True
    )
    nodes = {node["name"]: node for node in profile["nodes"]}
    assert nodes["softmax"]["outputs"] == ["float [64, 256]"]


def test_tells_what_was_alive_at_the_peak(tenon, model):
    profile = tenon.json("profile", model, "--dim", "batch=64")
    (memory,) = profile["memory"]
    assert memory["device"] == "CPU:0"
    peak = memory["peak"]
    assert peak["bytes"] == max(point[1] for point in memory["curve"])
    assert sum(block["bytes"] for block in peak["blocks"]) == peak["bytes"]
    first = memory["first_run"] or peak
    assert any(
        block["what"] == "output" and block["tensor"].startswith("float [64, ")
        for block in first["blocks"]
    )
    assert memory["curve"][-1][1] == 0, "the end of the session frees everything"


def test_tells_who_helped(tenon, model):
    profile = tenon.json("profile", model, "--dim", "batch=512", "--threads", "2")
    threads = profile["threads"]
    parts = ("alone_ms", "loop_run_ms", "loop_wait_ms", "loop_start_ms")
    assert sum(threads[part] for part in parts) == pytest.approx(threads["node_ms"], rel=0.05)
    assert threads["loop_run_ms"] > 0
    assert len(threads["helpers"]) <= 1
    alone = tenon.json("profile", model, "--threads", "1")["threads"]
    assert alone["helpers"] == []
    assert alone["loop_run_ms"] == 0


def test_says_where_it_cannot_write(tenon, model):
    for option in ("--trace", "--report"):
        result = tenon("profile", model, option, "missing/file")
        assert result.returncode == 1
        assert "missing/file" in result.stderr


def test_the_page_needs_nothing_else(tenon, tmp_path, model):
    tenon.ok("profile", model)
    page = (tmp_path / "perceptron.profile.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:)""", page)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert "default-src 'none'" in page
    assert page.count("</script>") == 2


class Browser:
    """Debian's chromium without a window."""

    def __init__(self, program: str, folder: Path):
        self.program = program
        self.folder = folder

    def open(self, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                self.program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--enable-logging=stderr",
                f"--user-data-dir={self.folder / 'browser'}",
                "--window-size=1280,2600",
                "--virtual-time-budget=5000",
                *options,
                page.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed")
    return Browser(program, tmp_path)


def console(result: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in result.stderr.splitlines() if "CONSOLE" in line]


def test_a_browser_shows_the_page(tenon, tmp_path, model, browser):
    """The page's contents after its script has run; checks that the script reports no error."""
    tenon.ok("profile", model, "--dim", "batch=64", "--threads", "2")
    result = browser.open(tmp_path / "perceptron.profile.html", "--dump-dom")
    assert console(result) == []
    page = result.stdout
    assert "<title>Tenon profile: perceptron.onnx</title>" in page
    for text in ("Typical run", "Peak memory", "GFLOP/s", "Alive at", "Threads", "CPU:0"):
        assert text in page, text
    assert 'relu &lt;/script&gt; "of the first"' in page, "names are text, whatever they hold"
    assert "second &amp; &lt;b&gt;layer&lt;/b&gt;" in page
    assert "<b>layer</b>" not in page
    assert len(re.findall(r'<path class="used"', page)) == 1
    assert len(re.findall(r"<canvas", page)) == 2


def test_the_console_is_read(tmp_path, browser):
    """Checks that the test above would detect an error."""
    page = tmp_path / "broken.html"
    page.write_text("<script>missing();</script>", encoding="utf-8")
    assert console(browser.open(page, "--dump-dom"))


def test_a_screenshot_shows_all_parts(tenon, tmp_path, model, browser):
    tenon.ok("profile", model, "--dim", "batch=64", "--threads", "2")
    picture = tmp_path / "page.png"
    browser.open(tmp_path / "perceptron.profile.html", f"--screenshot={picture}")
    cli_models.identity(tmp_path / "pixels.onnx", [1, 3, "h", "w"])
    tenon.ok("run", "pixels.onnx", "--input", f"x={picture}", "--output", "y=pixels.npy")
    pixels = (np.load(tmp_path / "pixels.npy")[0] * 255).round().astype(int)
    _, height, width = pixels.shape
    assert (height, width) == (2600, 1280)

    def count(color: str) -> int:
        wanted = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])[:, None, None]
        return int((np.abs(pixels - wanted).max(axis=0) <= 2).sum())

    assert count("#ffffff") > 0.3 * height * width, "the cards"
    assert count("#f5f6f8") > 0.05 * height * width, "the page around them"
    assert count("#4e79a7") > 3000, "the most expensive operator, in timeline, table and threads"
    assert count("#5b6b85") > 2000, "the runs in the timeline"
    assert count("#e0703a") > 20, "the mark of the peak"
    assert count("#c4d4ee") + count("#d1dff7") > 3000, "the memory in use, in runs and outside"
    rows = (pixels != pixels[:, :1, :1]).any(axis=0).any(axis=1)
    assert rows[:1200].mean() > 0.6, "no great gap"
