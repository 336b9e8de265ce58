"""Every set of rewrite rules is checked by CheckRules, which requires cases of each rule."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = r"(?:const RuleSet&|RuleSet|std::vector<(?:Fusion|Rule)>)"
DECLARED = re.compile(rf"^{RULES} (\w+)\(.*\);", re.MULTILINE)
DEFINED = re.compile(rf"^{RULES} (\w+)\(.*{{", re.MULTILINE)
# Text that every file with rules contains, except patterns and rewriting themselves.
MAKES_RULES = re.compile(r"\.pattern = ")
# Sets whose rules are all of another set, which is checked.
SUBSETS = {"RulesKeepingExportedPatterns"}  # of SimplifyingRules
CHECKED = re.compile(r"\bCheckRules\((?:RulesOf\()?(\w+)\(")


def texts(folder: pathlib.Path, suffix: str) -> dict[pathlib.Path, str]:
    return {path: path.read_text() for path in sorted(folder.rglob(f"*{suffix}"))}


def unchecked(root: pathlib.Path) -> list[str]:
    """The sets of src/ that no test checks, and files of rules that belong to no declared set."""
    declared = {
        name for text in texts(root / "src", ".h").values() for name in DECLARED.findall(text)
    }
    checked = {
        name for text in texts(root / "tests", ".cpp").values() for name in CHECKED.findall(text)
    }
    hidden = [
        str(path.relative_to(root))
        for path, text in texts(root / "src", ".cpp").items()
        if MAKES_RULES.search(text) and not declared & set(DEFINED.findall(text))
    ]
    return sorted(declared - checked - SUBSETS) + hidden


def test_every_rule_set_is_checked() -> None:
    assert unchecked(ROOT) == []
    files = [t for t in texts(ROOT / "src", ".cpp").values() if MAKES_RULES.search(t)]
    assert len(files) >= 8, "the expressions no longer find the rules"


def test_a_forgotten_rule_set_is_found(tmp_path: pathlib.Path) -> None:
    files = {
        "src/ops/a.h": "const RuleSet& CheckedRules();\nstd::vector<Fusion> LostFusions();\n",
        "src/ops/a.cpp": "const RuleSet& CheckedRules() {\n  f({.pattern = p});\n}\n",
        "src/ops/b.cpp": "RuleSet MakeRules() {\n  f({.pattern = p});\n}\n",
        "tests/ops/a_test.cpp": "CheckRules(CheckedRules(), cases);\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert unchecked(tmp_path) == ["LostFusions", "src/ops/b.cpp"]
