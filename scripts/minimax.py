#!/usr/bin/env python3
"""Fits the coefficients of src/kernels/math-inl.h and its neighbours; needs mpmath and numpy.

Prints every fit with its largest error, as C++ floats or doubles, lowest power first.
"""

import mpmath as mp
import numpy as np
from numpy.polynomial import chebyshev, polynomial

mp.mp.dps = 50


def fit_polynomial(f, low, high, degree, weight, points=600):
    """Remez exchange: the polynomial p of `degree` with the least max of weight * |f - p|."""
    count = degree + 2
    grid = [
        (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / (points - 1))
        for i in range(points)
    ]
    values = [f(t) for t in grid]
    weights = [weight(t) for t in grid]
    reference = [round(i * (points - 1) / (count - 1)) for i in range(count)]
    for _ in range(15):
        matrix, right = mp.matrix(count, count), mp.matrix(count, 1)
        for row, i in enumerate(reference):
            for power in range(degree + 1):
                matrix[row, power] = grid[i] ** power
            matrix[row, degree + 1] = mp.mpf((-1) ** row) / weights[i]
            right[row] = values[i]
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[i] for i in range(degree + 1)]
        errors = [
            w * (v - mp.polyval(coefficients[::-1], t))
            for t, v, w in zip(grid, values, weights, strict=True)
        ]
        extrema = alternating_extrema(errors, count)
        if len(extrema) < count or extrema == reference:
            break
        reference = extrema
    return coefficients, max(abs(e) for e in errors)


def alternating_extrema(errors, count):
    """Indices of `count` extrema of alternating sign, or fewer."""
    extrema = []
    for i, error in enumerate(errors):
        if extrema and (error > 0) == (errors[extrema[-1]] > 0):
            if abs(error) > abs(errors[extrema[-1]]):
                extrema[-1] = i
        else:
            extrema.append(i)
    while len(extrema) > count:
        first, last = abs(errors[extrema[0]]), abs(errors[extrema[-1]])
        extrema.pop(0 if first < last else -1)
    return extrema


def fit_rational(f, limit, degree_p, degree_q, points=1500, steps=400):
    """Lawson's reweighted least squares: p(t) / q(t) on [0, limit] of least relative error."""
    t = ((1 - np.cos(np.linspace(0, np.pi, points))) / 2 * np.sqrt(float(limit))) ** 2
    values = np.array([float(f(mp.mpf(x))) for x in t])
    basis_p = chebyshev.chebvander(2 * t / t[-1] - 1, degree_p)
    basis_q = chebyshev.chebvander(2 * t / t[-1] - 1, degree_q)
    weights, previous_q, best = np.ones(points) / points, np.ones(points), None
    for _ in range(steps):
        w = (np.sqrt(weights) / (values * previous_q))[:, None]
        system = np.hstack([basis_p * w, -basis_q * values[:, None] * w])
        norms = np.linalg.norm(system, axis=0)
        solution = np.linalg.svd(system / norms, full_matrices=False)[2][-1] / norms
        p, q = solution[: degree_p + 1], solution[degree_p + 1 :]
        q_values = basis_q @ q
        errors = np.abs(basis_p @ p / (values * q_values) - 1)
        if np.all(q_values * q_values[0] > 0) and (best is None or errors.max() < best[2]):
            best = (p, q, errors.max())
        previous_q = np.maximum(np.abs(q_values) / np.abs(q_values).max(), 1e-6)
        capped = np.minimum(errors, 20 * np.median(errors))
        weights = weights * (capped / errors.max() + 1e-5)
        weights /= weights.sum()
    p, q = (in_powers(c, t[-1]) for c in best[:2])
    return p / q[0], q / q[0], best[2]


def in_powers(coefficients, limit):
    """Coefficients of powers of t, from those of Chebyshev polynomials on [0, limit]."""
    result = np.zeros(1)
    for c in chebyshev.cheb2poly(coefficients)[::-1]:
        result = polynomial.polyadd(polynomial.polymul(result, [-1, 2 / limit]), [c])
    return result[: len(coefficients)]


def series(f, value_at_zero):
    """f, with the limit 0 where its formula would divide 0 by 0."""
    return lambda t: value_at_zero if abs(t) < mp.mpf(10) ** -8 else f(t)


def show(name, error, *coefficient_lists, form=lambda c: f"{np.float32(c):.9e}f"):
    print(f"{name}: error 2^{float(mp.log(error, 2)):.1f}")
    for coefficients in coefficient_lists:
        print("  " + ", ".join(form(float(c)) for c in coefficients))


def main():
    ln2, tiny = mp.log(2), mp.mpf(10) ** -20

    def polynomials(name, f, low, high, degree, weight):
        coefficients, error = fit_polynomial(f, mp.mpf(low), mp.mpf(high), degree, weight)
        show(name, error, coefficients)

    def odd(name, f, third, high, degree):
        """(f(x) - x) / x^3 in t = x^2, for the least relative error of f."""
        reduced = series(lambda t: (f(mp.sqrt(t)) / mp.sqrt(t) - 1) / t, third)
        polynomials(name, reduced, 0, high, degree, lambda t: t + tiny)

    polynomials(
        "exp: (e^r - 1 - r) / r^2",
        series(lambda r: (mp.exp(r) - 1 - r) / r**2, mp.mpf(1) / 2),
        -ln2 / 2 * 1.01,
        ln2 / 2 * 1.01,
        4,
        lambda r: r * r + tiny,
    )
    polynomials(
        "exp2: (2^r - 1) / r",
        series(lambda r: (2**r - 1) / r, ln2),
        -0.5,
        0.5,
        5,
        lambda r: abs(r) + tiny,
    )
    polynomials(
        "log: (log(1+f) - f + f^2/2) / f^3",
        series(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, mp.mpf(1) / 3),
        mp.sqrt(0.5) - 1,
        mp.sqrt(2) - 1,
        7,
        lambda f: f**2 * (abs(f / mp.log1p(f)) if f else 1) + tiny,
    )
    odd("sin", mp.sin, -mp.mpf(1) / 6, (mp.pi / 4) ** 2 * 1.01, 2)
    polynomials(
        "cos: (cos x - 1 + t/2) / t^2",
        series(lambda t: (mp.cos(mp.sqrt(t)) - 1 + t / 2) / t**2, mp.mpf(1) / 24),
        0,
        (mp.pi / 4) ** 2 * 1.01,
        2,
        lambda t: t * t + tiny,
    )
    odd("atan", mp.atan, -mp.mpf(1) / 3, mp.tan(mp.pi / 8) ** 2, 4)
    odd("asin", mp.asin, mp.mpf(1) / 6, 0.25, 4)
    odd("sinh", mp.sinh, mp.mpf(1) / 6, 1, 2)
    polynomials(
        "log2, the rest of 2 atanh(s) / ln2",
        series(lambda t: (2 * mp.atanh(mp.sqrt(t)) / mp.sqrt(t) - 2) / ln2 / t, 2 / ln2 / 3),
        0,
        0.0296,
        3,
        lambda t: t + tiny,
    )
    for name, f, slope, limit, degrees in (
        ("tanh", mp.tanh, 1, 9.02, (5, 4)),
        ("erf", mp.erf, 2 / mp.sqrt(mp.pi), 3.925, (5, 5)),
    ):
        quotient = series(lambda t, f=f: f(mp.sqrt(t)) / mp.sqrt(t), slope)
        p, q, error = fit_rational(quotient, limit**2, *degrees)
        show(name, error, p, q)
    doubles()


def doubles():
    """The fits of src/kernels/double_math-inl.h and of trigonometry-inl.h on doubles."""
    ln2, tiny = mp.log(2), mp.mpf(10) ** -20

    def polynomials(name, f, low, high, degree, weight):
        low, high = mp.mpf(low), mp.mpf(high)
        coefficients, error = fit_polynomial(f, low, high, degree, weight)
        show(name + ", in double", error, coefficients, form=repr)

    polynomials(
        "exp: (e^r - 1 - r) / r^2",
        series(lambda r: (mp.exp(r) - 1 - r) / r**2, mp.mpf(1) / 2),
        -ln2 / 2 * 1.01,
        ln2 / 2 * 1.01,
        9,
        lambda r: r * r + tiny,
    )
    polynomials(
        "log: (2 atanh(s) - 2 s) / s^3 in s^2",
        series(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z, mp.mpf(2) / 3),
        0,
        ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.001"),
        6,
        lambda z: z / 2 + tiny,
    )
    polynomials(
        "sin: (sin x - x) / x^3 in t = x^2",
        series(lambda t: (mp.sin(mp.sqrt(t)) / mp.sqrt(t) - 1) / t, -mp.mpf(1) / 6),
        0,
        (mp.pi / 4) ** 2 * mp.mpf("1.01"),
        5,
        lambda t: t + tiny,
    )
    polynomials(
        "cos: (cos x - 1 + t/2) / t^2",
        series(lambda t: (mp.cos(mp.sqrt(t)) - 1 + t / 2) / t**2, mp.mpf(1) / 24),
        0,
        (mp.pi / 4) ** 2 * mp.mpf("1.01"),
        5,
        lambda t: t * t + tiny,
    )
    erf = series(lambda t: mp.erf(mp.sqrt(t)) / mp.sqrt(t), 2 / mp.sqrt(mp.pi))
    polynomials("erf(x) / x in x^2", erf, 0, 1, 11, lambda t: 1 / erf(t))

    def scaled_erfc(t):
        x = 3 * (1 / t - 1)
        return mp.erfc(x) * mp.exp(x * x) / t

    polynomials(
        "erfc(x) e^(x^2) / t in t = 1 / (1 + x / 3)",
        scaled_erfc,
        1 / (1 + mp.mpf(28) / 3),
        mp.mpf(3) / 4,
        19,
        lambda t: 1 / scaled_erfc(t),
    )


if __name__ == "__main__":
    main()
