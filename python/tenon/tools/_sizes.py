"""Sizes that are known only in a run, as polynomials of names: N, 2*N + 1, floor(N/2)."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from typing import Union

# A number; or a size with names.
Size = Union[int, "Polynomial"]
INFINITY = 2**31 - 1  # as bounds of slices and the like


class Polynomial:
    """Integer coefficients by the sorted names of their term; () is the constant term.

    Names stand for sizes: numbers from 1 on. There is at least one name.
    """

    __slots__ = ("terms",)

    def __init__(self, terms: dict[tuple[str, ...], int]) -> None:
        self.terms = terms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __str__(self) -> str:
        ordered = sorted(self.terms.items(), key=lambda term: (term[0] == (), term[0]))
        text = ""
        for names, factor in ordered:
            size = abs(factor)
            parts = [*([str(size)] if size != 1 or not names else []), *map(grouped, names)]
            sign = "-" if factor < 0 else "+"
            text += f" {sign} {'*'.join(parts)}" if text else sign.strip("+") + "*".join(parts)
        return text


def grouped(name: str) -> str:
    """A name, in parentheses if it is a sum itself."""
    return f"({name})" if " " in name and not name.endswith(")") else name


def named(name: str) -> Polynomial:
    """The size of that name."""
    return Polynomial({(name,): 1})


def terms_of(size: Size) -> dict[tuple[str, ...], int]:
    """The terms, also of a number."""
    return size.terms if isinstance(size, Polynomial) else {(): size}


def made(terms: dict[tuple[str, ...], int]) -> Size:
    """A number or a polynomial."""
    kept = {names: factor for names, factor in terms.items() if factor}
    if not kept.keys() - {()}:
        return kept.get((), 0)
    return Polynomial(kept)


def add(a: Size, b: Size) -> Size:
    """Their sum."""
    terms = dict(terms_of(a))
    for names, factor in terms_of(b).items():
        terms[names] = terms.get(names, 0) + factor
    return made(terms)


def multiply(a: Size, b: Size) -> Size:
    """Their product."""
    terms: dict[tuple[str, ...], int] = {}
    for left, factor in terms_of(a).items():
        for right, other in terms_of(b).items():
            names = tuple(sorted(left + right))
            terms[names] = terms.get(names, 0) + factor * other
    return made(terms)


def subtract(a: Size, b: Size) -> Size:
    """Their difference."""
    return add(a, multiply(b, -1))


def divide(a: Size, b: Size) -> Size:
    """Their quotient, rounded down."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    # What divides without a rest is taken out; a rest between 0 and the divisor is dropped.
    whole: dict[tuple[str, ...], int] = {}
    rest: Size = a
    if len(terms_of(b)) == 1:
        ((names, divisor),) = terms_of(b).items()
        for term, factor in terms_of(a).items():
            left = Counter(term)
            left.subtract(names)
            if factor % divisor == 0 and all(count >= 0 for count in left.values()):
                whole[tuple(sorted(left.elements()))] = factor // divisor
                rest = subtract(rest, made({term: factor}))
    return add(made(whole), _divide_rest(rest, b))


def _divide_rest(rest: Size, b: Size) -> Size:
    """The same for a dividend of which no term is a multiple of the divisor."""
    if isinstance(rest, int) and isinstance(b, int):
        return rest // b
    if sign(b) == -1:
        rest, b = multiply(rest, -1), multiply(b, -1)
    is_small = sign(b) == 1 and sign(subtract(b, rest)) == 1  # rest < b
    if rest == 0 or (is_small and sign(rest) == 1):
        return 0
    if sign(rest) == -1 and sign(b) == 1 and is_below(multiply(rest, -1), b):
        return -1
    top = f"({rest})" if " " in str(rest) else str(rest)
    bottom = f"({b})" if " " in str(b) or "*" in str(b) else str(b)
    return named(f"floor({top}/{bottom})")


def sign(size: Size) -> int | None:
    """-1, 0 or 1 for every value of the names; None if it depends on them."""
    if isinstance(size, int):
        return (size > 0) - (size < 0)
    factors = [factor for names, factor in size.terms.items() if names]
    least = sum(size.terms.values())  # where all names are 1
    if all(factor > 0 for factor in factors) and least > 0:
        return 1
    if all(factor < 0 for factor in factors) and least < 0:
        return -1
    return None


def is_below(a: Size, b: Size) -> bool | None:
    """Whether a <= b; None if it depends on names."""
    difference = subtract(b, a)
    if sign(difference) is not None:
        return sign(difference) != -1
    if sign(add(difference, 1)) == 1:  # b - a > -1
        return True
    return None


def _extreme(name: str, keeps_first: Callable[[bool], bool], a: Size, b: Size) -> Size:
    below = is_below(a, b)
    if below is None:
        below_reverse = is_below(b, a)
        below = None if below_reverse is None else not below_reverse
    if below is not None:
        return a if keeps_first(below) else b
    first, second = sorted((str(a), str(b)))
    return named(f"{name}({first}, {second})")


def smaller(a: Size, b: Size) -> Size:
    """The smaller one."""
    return _extreme("Min", lambda below: below, a, b)


def larger(a: Size, b: Size) -> Size:
    """The larger one."""
    return _extreme("Max", operator.not_, a, b)


def product(sizes: list[Size]) -> Size:
    """The product of all."""
    result: Size = 1
    for size in sizes:
        result = multiply(result, size)
    return result
