"""Small changes of C++ text, each of which a good test detects. mutate.py applies them.

It reads text, not C++. Comments, literals, preprocessor lines, brackets of templates and calls
without effect in a release are blanked first. The rest has clang-format's form, in which a binary
operator has a space on either side and a pointer's star does not.
"""

import dataclasses
import re
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True, order=True)
class Mutation:
    """source[begin:end] becomes `text`."""

    begin: int
    end: int
    text: str
    kind: str

    def applied_to(self, source: str) -> str:
        """The mutant."""
        return source[: self.begin] + self.text + source[self.end :]

    def line_in(self, source: str) -> int:
        """Where it is, counted from 1."""
        return source.count("\n", 0, self.begin) + 1

    def described_in(self, source: str) -> str:
        """What changes into what, on one line."""
        old, new = (" ".join(t.split()) for t in (source[self.begin : self.end], self.text))
        return f"`{old}` -> `{new}`" if new else f"`{old}` deleted"


# What holds no code, in the order in which one may hide another.
HIDDEN = re.compile(
    r"""
    //[^\n]*
    | /\*.*?\*/
    | ^[ \t]*\#(?:[^\\\n]|\\.)*             # with the lines that continue it
    | R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"
    | "(?:[^"\\\n]|\\.)*"
    | (?<!\w)'(?:[^'\\\n]|\\.)+'            # no digit separator
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
# Calls whose arguments no test of a release can see.
WITHOUT_EFFECT = re.compile(r"\b(?:TENON_DCHECK|TENON_LOG|static_assert|reserve)\(")
TEMPLATE = re.compile(r"\btemplate <|(?<=\w)<(?![\s=<])")

Table = dict[str, tuple[str, ...]]
RELATIONAL: Table = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
}
ARITHMETIC: Table = {
    **{"+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("*",)},
    **{"+=": ("-=",), "-=": ("+=",), "*=": ("/=",), "/=": ("*=",)},
}
LOGICAL: Table = {"&&": ("||",), "||": ("&&",)}
# Functions that stand for operators, in std and in Highway (hn).
CALLS = {
    **{"std::min": "std::max", "std::max": "std::min"},
    **{"hn::Min": "hn::Max", "hn::Max": "hn::Min"},
    **{"hn::Add": "hn::Sub", "hn::Sub": "hn::Add", "hn::Mul": "hn::Div", "hn::Div": "hn::Mul"},
    **{"hn::MulAdd": "hn::NegMulAdd", "hn::NegMulAdd": "hn::MulAdd", "hn::MulSub": "hn::MulAdd"},
    **{"hn::Lt": "hn::Le", "hn::Le": "hn::Lt", "hn::Gt": "hn::Ge", "hn::Ge": "hn::Gt"},
    **{"hn::Eq": "hn::Ne", "hn::Ne": "hn::Eq"},
}

OPERATOR = re.compile(r"(?<= )(?:[<>=!]=|[-+*/]=|&&|\|\||[-<>+*/%])(?=[ \n])")
NEGATION = re.compile(r"!(?=[\w(])")
WHOLE = re.compile(
    r"(?<![\w.])(?<![\d.][eE][-+])(\d[\d']*)(?:[uU]?[lL]{0,2}|[lL]{1,2}[uU])(?![\w.'])"
)
REAL = re.compile(
    r"(?<![\w.])((?:\d[\d']*\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|0[xX][\da-fA-F.]+p[-+]?\d+)"
    r"([fF]?)(?![\w.])"
)
TRUTH = re.compile(r"\b(?:true|false)\b")
CALL = re.compile(r"\b(?:std|hn)::\w+\b")
RETURN_CHECK = re.compile(r"^[ \t]*(TENON_RETURN_IF_\w+\()", re.MULTILINE)
IF = re.compile(r"\bif \(")
REFUSAL = re.compile(
    r"\s*\{?\s*return (?:\w+::)*"
    r"(?:InvalidArgument|NotImplemented|Fail|Failure|InvalidGraph|RuntimeException|NotFound)\("
)
FACTOR = "1.001"


def blank(text: str, begin: int, end: int) -> str:
    """With spaces for what is there; lines keep their numbers."""
    return text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]


def closing(text: str, opening: int) -> int:
    """The place after the parenthesis that closes the one at `opening`; -1 if none does."""
    depth = 0
    for i in range(opening, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i + 1
    return -1


def end_of_template(text: str, opening: int) -> int:
    """The place after the bracket that closes the one at `opening`; -1 if it is no bracket."""
    depth, parentheses = 0, 0
    for i in range(opening, len(text)):
        character, before = text[i], text[i - 1]
        if character in ";{}" or parentheses < 0:
            return -1
        parentheses += (character == "(") - (character == ")")
        if parentheses:
            continue
        if character == "<":
            depth += 1
        elif character == ">" and before != "-":
            depth -= 1
        if depth == 0:
            return i + 1
    return -1


def code_of(source: str) -> str:
    """The source, as long as it was, with spaces for all that is not to be changed."""
    for match in HIDDEN.finditer(source):
        source = blank(source, *match.span())
    for match in WITHOUT_EFFECT.finditer(source):
        source = blank(source, match.start(), max(closing(source, match.end() - 1), match.end()))
    for match in TEMPLATE.finditer(source):
        end = end_of_template(source, match.end() - 1)
        if end > 0:
            source = blank(source, match.end() - 1, end)
    return source


def of_operators(code: str) -> Iterator[Mutation]:
    """Relational, arithmetic and logical ones."""
    kinds = {"relational": RELATIONAL, "arithmetic": ARITHMETIC, "logical": LOGICAL}
    for match in OPERATOR.finditer(code):
        for kind, table in kinds.items():
            for text in table.get(match[0], ()):
                yield Mutation(*match.span(), text, kind)
    for match in NEGATION.finditer(code):
        yield Mutation(*match.span(), "", "logical")


def of_constants(code: str) -> Iterator[Mutation]:
    """Numbers, true and false."""
    for match in WHOLE.finditer(code):
        number = int(match[1].replace("'", "")) + 1
        yield Mutation(*match.span(1), str(number), "constant")
    for match in REAL.finditer(code):
        is_zero = not re.search(r"[1-9a-fA-F]", re.split("[eEpP]", match[1].lower())[0][:40])
        changed = f"1.0{match[2]}" if is_zero else f"({match[0]} * {FACTOR}{match[2]})"
        yield Mutation(*match.span(), changed, "constant")
    for match in TRUTH.finditer(code):
        yield Mutation(*match.span(), "false" if match[0] == "true" else "true", "constant")


def of_calls(code: str) -> Iterator[Mutation]:
    """A minimum for a maximum, and Highway's names of operators."""
    for match in CALL.finditer(code):
        if match[0] in CALLS:
            yield Mutation(*match.span(), CALLS[match[0]], "call")


def of_checks(code: str, source: str) -> Iterator[Mutation]:
    """Checks that end a function with an error: the line goes, or the condition never holds."""
    for match in RETURN_CHECK.finditer(code):
        end = closing(code, match.end() - 1)
        if code[end : end + 1] == ";":
            yield Mutation(match.start(1), end + 1, "", "check")
    for match in IF.finditer(code):
        end = closing(code, match.end() - 1)
        if REFUSAL.match(code, end):
            condition = source[match.end() : end - 1]
            yield Mutation(match.end(), end - 1, f"false && ({condition})", "check")


def mutations(source: str) -> list[Mutation]:
    """All of a source, in order."""
    code = code_of(source)
    found = [*of_operators(code), *of_constants(code), *of_calls(code), *of_checks(code, source)]
    return sorted(found)
