r"""Rectangles of the multivariate Student's t, as normal ones averaged over a scale.

v = mean + z / s with z ~ N(0, cov) and df s^2 chi-squared on df degrees of freedom, so that

    P(lower < v < upper) = E[ P(s (lower - mean) < z < s (upper - mean)) ],

by the trapezoidal rule of `gpcmc.rectangle.scales`. Up to three dimensions the normal probabilities are closed forms.
Elsewhere the rule is found with the bound of minimax tilting in their place, which is near them and has no noise; and
samples at its nodes follow. They have to agree as the bounds do: where the rule of every other node is farther off than
their errors explain, nodes are added.

References
----------
Genz and Bretz (2009), Computation of Multivariate Normal and t Probabilities, section 2.1.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import replace

import numpy as np

from gpcmc._validation import FloatArray
from gpcmc.posterior import NOT_MET, OK
from gpcmc.rectangle import rounds, small
from gpcmc.rectangle.arguments import Problem
from gpcmc.rectangle.blocks import Block, Reduced, reduce
from gpcmc.rectangle.estimate import Options, RectangleEstimate, Scale, bounded, estimate, worst
from gpcmc.rectangle.order import ordered
from gpcmc.rectangle.scales import rule_of, scaled
from gpcmc.rectangle.solve import CLOSED, closed_form, tilting
from gpcmc.rectangle.tilt import minimax_tilt

_FALL = 42.0  # nats below the mode where the integral of closed forms ends
_SETTLED = 1e-12  # share of it that the series to the left may be off
_AGREED = 1e-8  # distance of two rules of closed forms: the error is about the square
_NEAR = 3.0  # and of two rules of bounds, over the error asked for
_REST = 0.02  # and of the series with samples, over the error asked for
_NEEDLESS = 1e-3  # share of the integral, over the error asked for, that needs no samples
_COUNTED = 1e-2  # and that a node must have to decide the status
_APART = 4.0  # standard deviations that the rule of every other node may be off
_SMALL = 1e-7  # limits that are as good as zero, in the bound
_COARSE = 0.1  # standard error of a node at most, unless more is asked for
_MOST = 2**9  # intervals between nodes that get samples


def check_df(value: object) -> float | None:
    """Return degrees of freedom, or None for the normal.

    Raises
    ------
    ValueError
        If they are not a number above zero.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not float(value) > 0:
        raise ValueError(
            f"df must be a number above 0, or None for the normal distribution; got {value!r}"
        )
    return None if math.isinf(value) else float(value)


def student_estimate(
    problem: Problem, df: float, options: Options, rng: np.random.Generator
) -> RectangleEstimate:
    """Estimate the probability of one checked rectangle under Student's t."""
    centred = replace(
        problem,
        lower=problem.lower - problem.mean,
        upper=problem.upper - problem.mean,
        mean=np.zeros_like(problem.mean),
    )
    whole = reduce(centred)
    if not (whole.possible and whole.blocks):
        return estimate(centred, options, rng)
    found = None
    if options.request.method == "auto" and all(
        len(block.R) <= small.LARGEST for block in whole.blocks
    ):
        found = _exact(whole, df, options)
    return _sampled(centred, whole, df, options, rng) if found is None else found


def _exact(whole: Reduced, df: float, options: Options) -> RectangleEstimate | None:
    """Return the probability by closed forms; None where floating point holds nothing of one."""
    errors: dict[float, float] = {}

    def log_p(x: FloatArray) -> FloatArray:
        total = np.zeros((2, len(x)))
        for block in whole.blocks:
            low, high = (scaled(limit, x[:, None]) for limit in (block.lower, block.upper))
            R = np.broadcast_to(block.R, (len(x), *block.R.shape))
            total += small.log_probabilities(low, high, R, block.slack)
        errors.update(zip(x.tolist(), total[1].tolist(), strict=True))
        return np.minimum(total[0], 0.0)

    ruled = rule_of(log_p, whole.blocks, df, _FALL, _SETTLED, _AGREED)
    if ruled is None:
        return None
    rule, values = ruled
    log_total, share = rule.total(values)
    counted = share > 0.0
    x, share = rule.x[counted], share[counted]
    error = np.array([errors[one] for one in x.tolist()])
    if not np.isfinite(error).all():
        return None
    guided = (False,) * len(whole.blocks)
    return RectangleEstimate(
        min(log_total, 0.0),
        float(share @ error) + _SETTLED,  # errors of closed forms may be of one sign
        0,
        OK,
        CLOSED,
        {"blocks": float(len(whole.blocks)), "scales": float(len(x))},
        options.confidence,
        (),
        whole,
        0,
        tuple(
            Scale(weight, math.exp(at), _at(whole, at), guided, 0)
            for weight, at in zip(share.tolist(), x.tolist(), strict=True)
        ),
    )


def _sampled(
    centred: Problem, whole: Reduced, df: float, options: Options, rng: np.random.Generator
) -> RectangleEstimate:
    """Return the probability from samples at each node."""
    largest_se = options.request.largest_se
    needless = _NEEDLESS * min(largest_se, _COARSE)

    # Limits that are all zero are in no order, and the bound depends on the order: it has its limit before that
    size = np.abs(np.concatenate([limit for b in whole.blocks for limit in (b.lower, b.upper)]))
    least = math.log(_SMALL) - math.log(max(size[np.isfinite(size)].max(initial=0.0), 1e-300))
    if any((np.isfinite(b.lower) & np.isfinite(b.upper)).any() for b in whole.blocks):
        least = -math.inf  # and is zero there if two limits come together

    def log_near(x: FloatArray) -> FloatArray:
        each = np.maximum(x, least).tolist()
        return np.array([sum(_log_near(one, at) for one in whole.blocks) for at in each])

    ruled = rule_of(
        log_near,
        whole.blocks,
        df,
        -math.log(needless),
        _REST * min(largest_se, _COARSE),
        min(_NEAR * largest_se, _COARSE),
    )
    if ruled is None:
        return estimate(centred, options, rng)
    rule, near = ruled
    certain = centred.cov.diagonal() == 0.0  # inside their limits at every scale
    low = np.where(certain, -np.inf, centred.lower)
    high = np.where(certain, np.inf, centred.upper)
    found: dict[float, RectangleEstimate] = {}
    while True:
        _, share = rule.total(near)
        used = np.flatnonzero(share > needless / len(share))
        largest = _errors(share[used], largest_se)
        x = rule.x[used].tolist()
        for at, se in zip(x, largest.tolist(), strict=True):
            if at not in found:
                own = replace(options, request=replace(options.request, largest_se=se))
                node = replace(centred, lower=scaled(low, at), upper=scaled(high, at))
                found[at] = estimate(node, own, rng)
        nodes = [found[at] for at in x]
        values = np.full(len(share), -np.inf)
        values[used] = [one.log_probability for one in nodes]
        if not np.isfinite(values).any():
            return estimate(centred, options, rng)
        errors = np.zeros(len(share))
        errors[used] = [one.standard_error for one in nodes]
        errors[np.isneginf(values)] = 0.0  # of a node without a sample inside the status tells
        gap = rule.change(values)
        agreed = bool(abs(gap.sum()) <= _APART * np.linalg.norm(gap * errors) + largest_se)
        if agreed or rule.count >= _MOST:
            break
        rule = rule.of(2 * rule.count)
        between = np.ones(len(rule.x), bool)
        between[rule.every_other] = False
        finer = np.empty(len(between))
        finer[~between], finer[between] = near, log_near(rule.x[between])
        near = finer
    log_total, found_share = rule.total(values)
    error = float(np.linalg.norm(found_share * errors))
    decides = np.maximum(share, found_share)[used] > _COUNTED * largest_se
    statuses = [one.status for one, it in zip(nodes, decides, strict=True) if it]
    statuses.append(OK if agreed and error <= largest_se else NOT_MET)
    largest_node = nodes[int(np.argmax(found_share[used]))]
    return replace(
        largest_node,
        log_probability=min(log_total, 0.0),
        standard_error=error,
        samples=sum(one.samples for one in found.values()),
        status=worst(statuses),
        diagnostics=largest_node.diagnostics | {"scales": float(len(nodes))},
        _scales=tuple(
            Scale(
                float(found_share[k]),
                math.exp(at),
                one._reduced,
                tuple(block.method == "twisted-ep" for block in one._blocks),
                one._seed,
            )
            for k, at, one in zip(used, x, nodes, strict=True)
            if found_share[k] > 0.0 and one._reduced is not None
        ),
    )


def _errors(share: FloatArray, largest_se: float) -> FloatArray:
    """Return the standard errors of nodes, by their shares, that make `largest_se` of the integral with the least work.

    If the work of each goes as one over its error, these are in proportion to share^(-2/3).
    """
    part = share ** (-2.0 / 3.0)
    each = largest_se * part / np.linalg.norm(share * part)
    return np.minimum(each, max(largest_se, _COARSE))


def _at(whole: Reduced, x: float) -> Reduced:
    """Return blocks whose limits are scaled."""
    blocks = (
        replace(b, lower=bounded(scaled(b.lower, x)), upper=bounded(scaled(b.upper, x)))
        for b in whole.blocks
    )
    return replace(whole, blocks=tuple(blocks))


def _log_near(block: Block, x: float) -> float:
    """Return about the log probability of a block whose limits are scaled: exactly, a bound, or a small average."""
    (here,) = _at(Reduced(0, (block,), True, np.empty(0, np.intp)), x).blocks
    if not (here.lower < here.upper).all():
        return -math.inf
    exact = closed_form(here)
    if exact is not None:
        return exact.log_probability
    given = ordered(here.R, here.lower, here.upper, here.slack)
    if given.ties:
        # the bound knows nothing of these; equal random numbers make a smooth function of x
        mixture = tilting(given)
        return rounds.run_round(mixture, rounds.FIRST, np.random.default_rng(0)).log_probability
    tilt = minimax_tilt(given.factor, given.lower, given.upper, starts=[given.start])
    return min(tilt.log_bound, 0.0)
