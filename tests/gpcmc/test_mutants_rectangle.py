"""Planted faults of the engine for rectangles and orthants, each of which must turn a test of another file red."""

import numpy as np
import pytest
import test_chain as chains
import test_evidence
import test_orthant_methods as methods
import test_rectangle
import test_rectangle_parts as parts
import test_rectangle_truncated as truncated
import test_small
import test_truths
import test_vecchia
from planted import Mutant, turns_red

from gpcmc import TruncatedNormal, weights
from gpcmc.covariance import generators
from gpcmc.covariance.chain import Chain
from gpcmc.covariance.factor import DenseFactor
from gpcmc.covariance.generators import GeneratorFactor
from gpcmc.rectangle import (
    backward,
    chain,
    classification,
    draws,
    filter,
    gradient,
    guarantee,
    many,
    mixture,
    order,
    proposals,
    rounds,
    scales,
    small,
    student,
    tilt,
    vecchia,
)

#: Tests that see several faults, some with the setting in which they do.
DENSITY = parts.test_weight_times_proposal_is_the_target_density
SITED = parts.test_what_sites_make_of_a_factor
UNBIASED = parts.test_any_sites_are_unbiased
LINEAR = test_truths.test_value_error_and_status
SLOPES = test_evidence.test_any_guide_will_do_also_far_out
RECTANGLES = test_rectangle.test_gradient_of_a_box_by_the_sites
CHAIN = chains.test_orthants_of_up_to_three_are_closed_forms
RESAMPLED = chains.test_resampled_draws_are_unbiased_and_say_their_error
FACTOR = parts.test_a_factor_is_that_of_cholesky, ("generators",)
CORNERS = test_small.test_slopes_against_differences, (2,)
TOLERANCE = (
    methods.test_a_tolerance_that_the_points_do_not_meet_is_said_and_the_estimate_kept,
    (classification.Twisted,),
)
MUTANTS = {
    # the factors
    "a constant of the other sign": Mutant(
        DenseFactor.sited, "-0.5 * float(e @ e)", "0.5 * float(e @ e)", SITED, ("dense", 1.0)
    ),
    "a slope without the sites' mean": Mutant(
        GeneratorFactor.sited, "nu - tau * (H @ centre)", "nu", SITED, ("generators", 1.0)
    ),
    "half of what a block tells": Mutant(
        GeneratorFactor.of.__func__, "P -= gain.T @ gain", "P -= 0.5 * gain.T @ gain", *FACTOR,
    ),
    "a state that forgets": Mutant(
        GeneratorFactor.follow, "state +=", "state[:] =", parts.test_generators_end_with_what_is_known_of_u
    ),
    "test inputs without what is left of u": Mutant(
        GeneratorFactor.test_spread, "1.0 + D + np", "1.0 + D + 0.0 * np",
        LINEAR, ("linear, 30", "low rank", "twisted-ep"),
    ),
    "test inputs without the noise": Mutant(
        DenseFactor.test_rows, "1.0 + cross.variance", "cross.variance + 0.5",
        LINEAR, ("linear, 30", "array", "twisted-ep"),
    ),
    # order, tilt and bound
    "the easiest coordinate first": Mutant(
        order.ordered, "np.argmin(inside)", "np.argmax(inside)",
        parts.test_the_order_is_the_greedy_one_and_the_factor_belongs_to_it, (0,),
    ),
    "a bound without its s's": Mutant(
        tilt._Limits.at, "(As - s)", "As", parts.test_the_tilt_is_the_saddle_point, (0, "mixed", "dense")
    ),
    "a Newton step without W": Mutant(
        generators._LowRankGram.solve, "1.0 - w + w", "1.0 + w", *FACTOR,
    ),
    "a bound too low": Mutant(
        mixture.Mixture.defended.__func__, "+ float(np.log(1 + DEFENCE))", "",
        parts.test_no_weight_of_a_mixture_exceeds_its_bound,
    ),
    # proposals and mixtures
    "a tilt's weight without its square": Mutant(
        proposals.tilted, "0.5 * mu**2", "0.4 * mu**2", DENSITY, ("tilted", "mixed", "dense")
    ),
    "a site's integral without its curvature": Mutant(
        proposals.twisted, "w2 = 0.5", "w2 = 0.4", DENSITY, ("twisted", "orthant", "generators")
    ),
    "limits that do not move": Mutant(
        proposals._from, "w1 + 2.0 * w2 * by", "w1", DENSITY, ("twisted", "mixed", "dense")
    ),
    "weights by the drawing proposal alone": Mutant(
        mixture.Mixture.weigh, "log_w = -logsumexp(log_q, axis=0)", "log_w = -log_q[k]",
        UNBIASED, ("dense", True, "sobol"),
    ),
    "a Latin hypercube on its diagonal": Mutant(
        mixture.Latin.__call__, "rng.permuted(strata, axis=1)", "strata", UNBIASED, ("generators", False, "latin"),
    ),
    "an error where nothing bounds it": Mutant(
        mixture.average, "error = np.inf", "error = error", parts.test_a_few_samples_bound_no_error
    ),
    "errors that know of no mean": Mutant(
        mixture.Means.contributions, "share * (self.values - mean)", "share * self.values",
        parts.test_errors_of_weighted_means_are_those_of_the_jackknife,
    ),
    "a bound that overrules too early": Mutant(
        weights.hidden_tail, "np.log(0.1 *", "np.log(10.0 *", parts.test_what_the_weights_say
    ),
    "a round that is always good": Mutant(
        rounds.good, "enough and found.standard_error <= largest_se", "True",
        test_rectangle.test_the_tolerance_is_met_or_missed_aloud,
    ),
    "a round whose weights nobody looks at": Mutant(
        classification.OrthantMethod._sampled, "weights_status(found.diagnostics) == OK", "True",
        methods.test_weights_that_are_not_trusted_are_no_met_tolerance,
    ),
    "a limit of points that is none": Mutant(
        classification.OrthantMethod._sampled, "points <= self.points", "points <= 1024", *TOLERANCE,
    ),
    "a tolerance missed in silence": Mutant(
        classification.OrthantMethod._sampled, "status = NOT_MET", "pass", *TOLERANCE,
    ),
    # sites of labels
    "sites that stand for f": Mutant(
        classification.orthant_sites, "signs * nu / (1.0 - tau)", "signs * nu",
        methods.test_weights_are_close_to_equal_where_it_matters,
    ),
    "a tilt that is not that of the stand-in": Mutant(
        classification.Twisted._prepared, "starts=[rough.t]", "starts=[0.0 * rough.t]",
        methods.test_a_stand_in_costs_no_samples_and_no_bound, (1000.0,),
    ),
    # gradients
    "the mean's derivative forgotten": Mutant(
        backward.Back.covariance, "half = 0.5 * np.outer", "half = 0.0 * np.outer", SLOPES
    ),
    "the constant's derivative forgotten": Mutant(
        backward.Back.covariance, "cov.flat[:: n + 1] -= 0.5", "cov.flat[:: n + 1] -= 0.0", SLOPES
    ),
    "a diagonal of the factor without its rows": Mutant(
        backward.Way._gathered, 'np.einsum("ij,ij->i", G, G_bar)', "0.0", SLOPES
    ),
    "the defence's derivative in v forgotten": Mutant(
        backward.Back._bars, "found[j], by_v = way", "found[j], _ = way", SLOPES
    ),
    "an upper limit that moves no draw": Mutant(
        backward.Way.drawn, "by_x * q_high)", "0.0 * q_high)", RECTANGLES
    ),
    "a lower limit that moves no mass": Mutant(
        backward._Terms.add_limits, "rho * self.by_low / self.s)", "0.0 * self.by_low)", RECTANGLES
    ),
    "blocks that count twice": Mutant(
        gradient._between_blocks, "= 0.5 * np.outer", "= np.outer", test_rectangle.test_gradient_against_differences
    ),
    # draws, guaranteed intervals, closed forms
    "draws kept too often": Mutant(
        draws.BlockSampler.exact, "accept < below", "accept < below + 1.0",
        truncated.test_draws_of_which_a_third_is_refused,
    ),
    "second moments about the centre": Mutant(
        draws.moments, "second - np.outer(mean, mean)", "second + np.outer(mean, mean)",
        truncated.test_moments_far_from_the_origin,
    ),
    "a gambler who wins too soon": Mutant(
        guarantee._limit, "target = -np.log(alpha)", "target = -0.0 * np.log(alpha)",
        parts.test_coverage_of_the_mean_of_bounded_variables, ("uniform",),
    ),
    "a corner of the wrong sign": Mutant(
        small.slopes, "0.5 * corner if p == q else", "0.5 * corner if p != q else", *CORNERS,
    ),
    "correlations that stay where variances move": Mutant(
        small.slopes, "0.5 * (moved - pulled)", "0.5 * moved", *CORNERS,
    ),
    "a scale that is not weighed": Mutant(
        scales.Rule.total, "self.log_weight + log_p", "0.0 * self.log_weight + log_p",
        test_small.test_orthants_of_student_are_the_normal_ones,
    ),
    "a left tail that is cut off": Mutant(
        scales.Rule.log_weight.fget, "pure - self.df * step + both", "-1.0",
        test_small.test_one_dimension_of_student, (0.01, 2.0, np.inf),
    ),
    "samples at too few scales": Mutant(
        student._sampled, "rule = rule.of(2 * rule.count)", "break",
        test_small.test_samples_that_disagree_get_more_scales,
    ),
    "a batch that mixes its problems": Mutant(
        many.Problems.one, "self.lower[k]", "self.lower[0]", test_small.test_a_batch_of_larger_problems,
    ),
    # chains and particles
    "a step that is none": Mutant(
        chain.Twist.way, "fro @ (c * powers[i])", "fro @ c", CHAIN
    ),
    "a chain without its steps' noise": Mutant(
        Chain.sited, "** 2 * p + left[i - 1]", "** 2 * p", CHAIN,
    ),
    "a test value that hears nobody": Mutant(
        chain.QuadraturePosterior._at, "seen, 1.0", "1.0, 1.0",
        chains.test_class_probabilities_are_quotients_of_evidences, (1,),
    ),
    "particles that keep their weights": Mutant(
        filter._run, "one.log_weights[:] = mean", "one.log_weights[:] = one.log_weights[chosen]", RESAMPLED,
    ),
    "states that stay where they are": Mutant(
        filter.filtered, "one.state += np.reshape(centre, (-1, 1))", "one.state += 0.0", RESAMPLED,
    ),
    # fields
    "a neighbour that is not reflected": Mutant(
        vecchia.reflected, "signs[K.near.index] * ", "",
        test_vecchia.test_with_all_earlier_neighbours_a_factor_is_the_dense_one,
    ),
    "a determinant of the other sign": Mutant(
        vecchia.PrecisionFactor.sited, "- self.made.log", "+ self.made.log",
        test_vecchia.test_the_factor_of_a_precision_is_the_dense_one_in_its_order,
    ),
    "values that forget those beyond": Mutant(
        vecchia.PrecisionFactor.follow, "state[low:high] +=", "state[low:high] =",
        test_vecchia.test_blocks_draw_what_the_factor_multiplies, (vecchia.PrecisionFactor,),
    ),
    "values that forget their neighbours": Mutant(
        vecchia.VecchiaFactor.follow, "state[here] +=", "state[here] =",
        test_vecchia.test_blocks_draw_what_the_factor_multiplies, (vecchia.VecchiaFactor,),
    ),
    "a density of the wrong mass": Mutant(
        TruncatedNormal.logpdf, "heights.reshape(inside.shape) - mass", "heights.reshape(inside.shape)",
        test_small.test_density_and_distribution_function,
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_broken_version_turns_a_test_red(mutant, monkeypatch):
    with np.errstate(all="ignore"):
        turns_red(mutant, monkeypatch)
