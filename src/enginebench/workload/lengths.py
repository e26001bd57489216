"""How many tokens a request asks for."""

from __future__ import annotations

from statistics import NormalDist

from enginebench.model.scenario import TokenCount

_STANDARD = NormalDist()


def token_count(count: TokenCount, uniform: float) -> int:
    """The length that `uniform`, a number in (0, 1), stands for: at least 1.

    A normal length outside [low, high] becomes that bound (clipped, not drawn again), so that no
    draw depends on another.
    """
    match count.kind:
        case "fixed":
            return max(1, round(count.mean))
        case "uniform":
            return min(count.high, count.low + int(uniform * (count.high - count.low + 1)))
        case "normal":
            length = round(count.mean + count.stdev * _STANDARD.inv_cdf(uniform))
            return max(1, count.low, min(count.high, length))


def mean_tokens(count: TokenCount) -> float:
    """Expected length. For a normal X clipped to [a, b], with z = (bound - mean) / stdev:
    a F(za) + b (1 - F(zb)) + mean (F(zb) - F(za)) + stdev (f(za) - f(zb)), from integrating each
    of the three parts; f and F are the standard normal density and distribution."""
    if count.kind == "uniform":
        return (count.low + count.high) / 2
    if count.kind == "fixed" or count.stdev == 0:
        return count.mean
    low_z, high_z = ((bound - count.mean) / count.stdev for bound in (count.low, count.high))
    below, inside = _STANDARD.cdf(low_z), _STANDARD.cdf(high_z) - _STANDARD.cdf(low_z)
    return (
        count.low * below
        + count.high * (1 - below - inside)
        + count.mean * inside
        + count.stdev * (_STANDARD.pdf(low_z) - _STANDARD.pdf(high_z))
    )
