"""Compares RegexFullMatch with RE2 itself (package google-re2), if that is installed."""
# ruff: noqa: RUF001

import itertools
import random

import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper

re2 = pytest.importorskip("re2")

TEXT_LIST = """|a|b|A|B|k|K|K|s|ſ|ab|ba|aa|aaa|abc|aab|abb|aabb|Ab|AB|a b|a~b|~|a~|~a|0|42
4a|_|a_1|-|]|[|^|$|.|*|{|}|{2}|a{2}|a{,2}|a{2|(|)|\\|é|É|aé|α|Α|ω|Ω|д|Д|ё|中|🙂
aaaa|aaaaa|aaaaaa|abab|ababab|a.b|a*|x|xyz|XYZ|,|;|\t|\x07|\x0b|\x0c|\r|\x7f|σ|ς
Σ|ß|ẞ|İ|ı|i|I|user@example.org|2024-01-31|192.168.0.1|tab\there|٣|Ⅷ|¾|→"""

TEXTS = TEXT_LIST.replace("\n", "|").replace("~", "\n").split("|")

# The syntax, construct by construct; what RE2 refuses too.
PATTERNS = r"""a|.|a*|a+|a?|a*?|a+?|a??|a{2}|a{2,}|a{2,3}|a{2}?|a{2,3}?|a{0}|a{0,1}|a{0,0}b
(a)|(?:a)|(a*)*|(a*)+
(a+)*|(a|b)*|(?:ab)*|(ab|ba)*|(?P<n>a)|(?<n>a)|(?P<é>a)|(?P<n>a)(?P<n>b)
(?P<>a)|(?P<n-m>a)|(?P<n|(?Pa)|(?P=n)
(?i)a|(?i:a)b|(?i)ab|(?-i)a|(?i-s:a.)|(?s).*|(?s:.)*|.*|(?m)^a$|(?m)^a$\n^b$
(?m:^)\n(?m:$)|(?U)a+|(?U)a+?|(?imsU)a
(?i|(?|(?)|(?-)|(?i-)|(?--i)|(?i--s)|(?x)a|(?=a)|(?!a)|(?<=a)|(?<!a)|(?#c)
(?>a)|(?:)|()|(?i)k|(?i)[k]|(?i)[^k]|(?i)s
(?i)[a-z]+|(?i)ſ|(?i)σ|(?i)[Σ]|(?i)ß|(?i)ẞ|(?i)İ|(?i)ı|(?i)i|(?i)\w|(?i)\W
(?i)[\W]|(?i)[^\w]|(?i)\p{Lu}|(?i)\P{Lu}
(?i)[[:upper:]]|(?i)[[:^upper:]]|(?i)[\P{Lu}]|(?i)[^\p{Lu}]|(?i)Ω|(?i)Å|(?i)µ
(?i)\x{4b}|(?i)\Qk\E|(?i)[a-k]|(?i)Д
\d|\D|\s|\S|\w|\W|\d+|[\d]|[^\d]|[\D]|[\s\d]+|\pL|\PL|\p{L}|\p{^L}|\P{^L}|\pN+
\p{Nd}|\p{Greek}|\p{Latin}+|\P{Greek}
\p{Cyrillic}|\p{Han}|\p{Any}|\p{Cs}|\p{foo}|\p{}|\p|\p{L|\pé|[\p{Lu}]|[^\p{Lu}]
[\PL]|[\p{Greek}a]|\p{lu}|\p{LC}
[a]|[^a]|[abc]+|[a-c]+|[^a-c]+|[]a]|[^]a]|[]|[^]|[|[a|[a-|[a-]|[-a]|[a-b-c]
[a\-b]|[z-a]|[a-\d]|[\d-a]|[\d-]|[a\]b]
[[]|[[:alpha:]]|[[:^alpha:]]|[[:foo:]]|[[:alpha:]|[[:alpha]|[:alpha:]
[[:word:]]+|[[:space:]]|[[:punct:]]|[[:ascii:]]
[[:digit:]a]|[[=a=]]|[[.a.]]|[\n]|[\t]|[\x41]|[\x{41}-\x{43}]|[\101]|[\\]|[\Q]
[\b]|[é-ü]|[^\n]|[^\x00-\x{10FFFF}]
\a|\f|\n|\r|\t|\v|\0|\00|\101|\1|\12|\8|\9|\18|\x41|\x4|\x|\x{41}|\x{1F642}
\x{110000}|\x{}|\x{g}|\x{41|\x4g|\e|\cA|\u0041
\.|\*|\\|\[|\]|\(|\)|\{|\}|\^|\$|\/|\-|\_|\ |\é|\C|\X|\R|\Z|\G|\K|\h|\N|\Aa|a\z
\ba|a\b|\Ba|a\B|\b|\B|^|$|^a|a$|^$|^*
$*|^+|\b+|(?:^)*|a^b|a$b|\A*|a(?i)*|a(?i)b|a*(?i)*|(?i)*|*|+|?|{2}|a**|a*+|a+*
a?*|a*{2}|a{2}{3}|a{2}*|a{2}??|a???
(*)|(|a)|(a|)|(|)|||a|b|a||b|(a|b|c)d?|a{|a{,2}|a{2|a{2,|a{b}|a{02}|a{2,1}
a{1000}|a{1001}|a{1,1001}|a{1001,}
(a{10}){100}|(a{10}){101}|((a{10}){10}){10}|((a{10}){10}){11}|(?:a{3}){2}
(?:a{2,3}){2}|(?:a{0,2}b?){2}|(a{2,})+
\Qa.b\E|\Qa*|\Q\E|\Qab\E*|\E|a\Eb|\Q(\E|\Q\\E|a{1,}|(a|b){2,4}|(a(b)?)+|((a)
(b))*|[0-9]{4}-[0-9]{2}-[0-9]{2}
(\w+)@(\w+)\.(?:com|org)|(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]
2[0-4]\d|1?\d?\d)|(|)a(|)a(b|)|)|(|a)|(a
a(?i:b(?-i)c)|((?i)a)b|(?i)a|b|(a|(?i)b)|(a(?i)|b)c|(?s)a.b|(?-s)a.b|(?ms)^.*$
(?m)a$(?s).^b|\w+\s\w+|\S+|é+|.é|中|[中]
\bé|é\b|a\bé|[^é]|\x{e9}|🙂|[🙂]|.{2}|..|[\w.]+@[\w.]+|[^@]+@.*""".splitlines()


def split_patterns() -> list[str]:
    """A '|' inside of brackets belongs to a pattern, so those with one are tried whole as well."""
    found = []
    for line in PATTERNS:
        parts = line.split("|")
        found += parts
        found += ["|".join(pair) for pair in itertools.pairwise(parts)]
    return list(dict.fromkeys(found))


def full_matches(pattern: str, texts: list[str]) -> list[bool]:
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    x = helper.make_tensor_value_info("x", TensorProto.STRING, [None])
    y = helper.make_tensor_value_info("y", TensorProto.BOOL, [None])
    graph = helper.make_graph([node], "g", [x], [y])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=onnx.IR_VERSION
    )
    session = tenon.InferenceSession(model.SerializeToString())
    return session.run(None, {"x": np.array(texts, dtype=object)})[0].tolist()


def expected_matches(pattern: str, texts: list[str]) -> list[bool] | None:
    """None if RE2 refuses the pattern."""
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error:
        return None
    return [compiled.fullmatch(text) is not None for text in texts]


def disagreement(pattern: str, texts: list[str]) -> str:
    expected = expected_matches(pattern, texts)
    try:
        actual = full_matches(pattern, texts)
    except Exception as error:
        return "" if expected is None else f"{pattern!r} is refused: {error}"
    if expected is None:
        return f"{pattern!r} is accepted"
    wrong = [t for t, a, e in zip(texts, actual, expected, strict=True) if a != e]
    return f"{pattern!r} is wrong for {wrong}" if wrong else ""


def test_matches_as_re2_does() -> None:
    different = [p for p in split_patterns() if r"\C" not in p]
    found = [text for text in (disagreement(p, TEXTS) for p in different) if text]
    assert not found, "\n".join(found)


def test_random_patterns() -> None:
    """Patterns that mean something or not, put together from pieces."""
    pieces = r"a|b|k|é|.|\d|\w|\W|[ab]|[^a]|(|(?:|(?i)|(?i:|)|)|*|+|?|{2}|{1,2}|{0,2}|^|$|\b|\B"
    numbers = random.Random(7)
    alphabet = ["a", "b", "k", "K", "é", "1", "\n", "_", "-"]
    texts = ["".join(numbers.choices(alphabet, k=numbers.randrange(7))) for _ in range(60)]
    found = []
    for _ in range(1500):
        chosen = numbers.choices([*pieces.split("|"), "|", "|"], k=numbers.randrange(1, 10))
        pattern = "".join(chosen)
        pattern += ")" * max(0, pattern.count("(") - pattern.count(")"))
        found.append(disagreement(pattern, texts))
    found = [text for text in found if text]
    assert not found, "\n".join(found)
