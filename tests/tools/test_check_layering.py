"""check_layering.py finds each broken rule, and nothing else."""

import graphlib
import pathlib

import pytest
from check_layering import ALLOWED, ALLOWED_FOLDERS, check_tree

HEADERS = (
    {f"src/{room}/public.h": "#pragma once\n" for room in ALLOWED}
    | {
        f"src/{room}/{folder}/part.h": "#pragma once\n"
        for room, folders in ALLOWED_FOLDERS.items()
        for folder in folders
        if folder
    }
    | {
        "include/onnxruntime_c_api.h": "#pragma once\n",
        "cli/arguments.h": "#pragma once\n",
    }
)


@pytest.fixture
def tree(tmp_path):
    """A function that makes a tree with one header per room and the given file, and checks it."""

    def check(path: str, text: str) -> list[str]:
        for name, content in (HEADERS | {path: text}).items():
            file: pathlib.Path = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        return check_tree(tmp_path)

    return check


ACCEPTED = {
    "down": ("src/runtime/a.cpp", '#include "ir/public.h"\n#include "base/public.h"\n'),
    "own room": ("src/ir/a.cpp", '#include "ir/public.h"\n'),
    "ops uses kernels": ("src/ops/a.cpp", '#include "kernels/public.h"\n'),
    "public headers": ("src/capi/a.cpp", "#include <onnxruntime_c_api.h>\n"),
    "library": ("src/ir/a.cpp", "#include <protozero/pbf_reader.hpp>\n#include <vector>\n"),
    "comment": ("src/ops/a.cpp", '// #include <iostream>\n/* std::mutex\n#include "capi/x.h" */\n'),
    "url in a string": ("src/ops/a.cpp", 'auto s = "http://a"; // std::thread\n'),
    "threads at home": ("src/base/a.cpp", "#include <thread>\nstd::thread t; std::mutex m;\n"),
    "cli over include": ("cli/a.cpp", '#include "onnxruntime_c_api.h"\n#include "arguments.h"\n'),
    "ranges off the web": ("cli/a.cpp", "auto m = std::ranges::min(v);\n"),
    "own folder": ("src/ops/conv/a.cpp", '#include "ops/conv/part.h"\n'),
    "another folder": ("src/ops/quantized/a.cpp", '#include "ops/linear/part.h"\n'),
    "what lies in the room": ("src/kernels/gemm/a.cpp", '#include "kernels/public.h"\n'),
    "from the room": ("src/ops/a.cpp", '#include "ops/fusion/part.h"\n'),
    "tests see rooms": ("tests/ir/a.cpp", '#include "ir/public.h"\nstd::thread t;\n'),
}

REJECTED = {
    "up": ("src/ir/a.cpp", '#include "runtime/public.h"\n', "ir may not include runtime"),
    "sideways": ("src/plugin/a.cpp", '#include "ops/public.h"\n', "plugin may not include ops"),
    "kernels are of ops": ("src/runtime/a.cpp", '#include "kernels/public.h"\n', "kernels"),
    "relative path": ("src/base/a.cpp", '#include "../ir/public.h"\n', "base may not include ir"),
    "angle brackets": ("src/base/a.cpp", "#include <ir/public.h>\n", "base may not include ir"),
    "generated": ("src/base/a.cpp", '#include "ir/schema_table.inc"\n', "base may not include ir"),
    "spaced directive": ("src/base/a.cpp", '  #  include "ir/public.h"\n', "base may not include"),
    "folder up": (
        "src/ops/linear/a.cpp",
        '#include "ops/quantized/part.h"\n',
        "ops/linear may not include ops/quantized",
    ),
    "folder to its room": (
        "src/ops/linear/a.cpp",
        '#include "ops/public.h"\n',
        "ops/linear may not include ops/",
    ),
    "unknown folder": (
        "src/ops/misc/a.cpp",
        '#include "ops/public.h"\n',
        "'misc' is no folder",
    ),
    "unknown room": ("src/utils/a.cpp", "\n", "'utils' is no room"),
    "iostream": ("tests/ir/a.cpp", "#include <iostream>\n", "<iostream> is banned"),
    "locale": ("src/base/a.cpp", "#include <locale>\n", "<locale> is banned"),
    "mutex": ("src/runtime/a.h", "struct S { std::mutex m; };\n", "std::mutex outside src/base"),
    "condition": ("src/ops/a.cpp", "std::condition_variable c;\n", "std::condition_variable"),
    "ranges": ("src/ir/a.cpp", "std::ranges::sort(v);\n", "std::ranges does not compile"),
    "views": ("tests/ir/a.cpp", "auto v = std::views::all(w);\n", "std::views does not compile"),
    "cli looks inside": ("cli/a.cpp", '#include "base/public.h"\n', "cli sees include/ alone"),
    "plugin looks inside": ("plugins/x/a.cpp", '#include "runtime/public.h"\n', "plugins sees"),
    "header looks inside": ("include/tenon/a.h", '#include "ir/public.h"\n', "include sees"),
}


@pytest.mark.parametrize("path, text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepts(tree, path, text):
    assert tree(path, text) == []


@pytest.mark.parametrize("path, text, message", REJECTED.values(), ids=REJECTED.keys())
def test_rejects(tree, path, text, message):
    problems = tree(path, text)
    assert len(problems) == 1
    assert problems[0].startswith(path) and message in problems[0]


def test_names_the_line(tree):
    problems = tree("src/base/a.cpp", '/* one\n two */\n#include "ir/public.h"\n')
    assert problems == ["src/base/a.cpp:3: base may not include ir ('ir/public.h')"]


# Name -> the files of a tree, and the circles that it has.
CIRCLES = {
    "none": (
        {
            "src/ir/a.h": '#include "ir/b.h"\n#include "ir/c.h"\n',
            "src/ir/a.cpp": '#include "ir/a.h"\n#include "ir/c.h"\n',
            "src/ir/b.h": '#include "ir/c.h"\n',
            "src/ir/c.h": "",
        },
        [],
    ),
    "headers": (
        {"src/ir/a.h": '#include "ir/b.h"\n', "src/ir/b.h": '#include "a.h"\n'},
        ["src/ir/a, src/ir/b: include each other"],
    ),
    "by way of a source": (
        {
            "src/ir/a.h": "",
            "src/ir/a.cpp": '#include "ir/a.h"\n#include "ir/b.h"\n',
            "src/ir/b.h": '#include "ir/a.h"\n',
        },
        ["src/ir/a, src/ir/b: include each other"],
    ),
    "by way of others": (
        {
            "src/ir/a.h": '#include "ir/deep/b.h"\n',
            "src/ir/deep/b.h": '#include "ir/c.inc"\n',
            "src/ir/c.inc": '#include "ir/a.h"\n',
            "src/ir/d.cpp": '#include "ir/a.h"\n',
        },
        ["src/ir/a, src/ir/c.inc, src/ir/deep/b: include each other"],
    ),
    "two": (
        {
            "src/ir/a.h": '#include "ir/b.h"\n',
            "src/ir/b.h": "",
            "src/ir/b.cpp": '#include "ir/a.h"\n',
            "src/ops/c.h": '#include "ops/d.h"\n',
            "src/ops/d.h": '#include "ops/c.h"\n#include "ir/a.h"\n',
        },
        ["src/ir/a, src/ir/b: include each other", "src/ops/c, src/ops/d: include each other"],
    ),
    "in a comment": (
        {"src/ir/a.h": '#include "ir/b.h"\n', "src/ir/b.h": '// #include "ir/a.h"\n'},
        [],
    ),
}


@pytest.mark.parametrize("files, problems", CIRCLES.values(), ids=CIRCLES.keys())
def test_finds_files_that_include_each_other(tmp_path, files, problems):
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert check_tree(tmp_path) == problems


def test_arrows_have_no_cycle():
    order = (
        "base",
        "tensor",
        "kernels",
        "ir",
        "runtime",
        "ops",
        "training",
        "capi",
        "plugin",
        "webnn",
    )
    assert set(order) == set(ALLOWED)
    for position, room in enumerate(order):
        assert ALLOWED[room] - {"include"} <= set(order[:position])


@pytest.mark.parametrize("arrows", ALLOWED_FOLDERS.values(), ids=ALLOWED_FOLDERS.keys())
def test_arrows_between_folders_have_no_cycle(arrows):
    graphlib.TopologicalSorter(arrows).prepare()
