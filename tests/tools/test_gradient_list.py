"""docs/training.md names the operators that have a gradient: those of the rules in the sources."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULE = re.compile(r'\{"(\w+)", \w+(?:<\w+>)?(?:, \d+)?(, kMicrosoft)?\},')
LIST = re.compile(
    r"These operators have a gradient:\n\n(.*?);\s+of `com.microsoft` (.*?)\.\n", re.DOTALL
)


def names(text: str) -> set[str]:
    return set(re.findall(r"\w+", text)) - {"and"}


def test_the_guide_names_the_operators_with_a_gradient() -> None:
    standard, contributed = set(), set()
    for path in sorted((ROOT / "src/ir").glob("*_gradients.cpp")):
        for name, is_contributed in RULE.findall(path.read_text()):
            (contributed if is_contributed else standard).add(name)
    assert len(standard) > 100, "the expression no longer finds the rules"
    found = LIST.search((ROOT / "docs/training.md").read_text())
    assert found
    # Gradients are not written by hand.
    assert names(found[1]) == {name for name in standard if not name.endswith("Grad")}
    assert names(found[2]) == {name for name in contributed if not name.endswith("Grad")}
