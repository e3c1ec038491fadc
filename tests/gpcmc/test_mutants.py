"""Broken versions of the mathematics, each of which must turn a test of another file red.

A mutant is a function in whose source one piece of text has another in its place. The test that has to notice it is
called as it is.
"""

import pytest
import test_covariance
import test_evidence
import test_gaussian
import test_likelihood
import test_multiclass
from planted import Mutant, turns_red

from gpcmc.covariance import conditioned, correction, dense, induced, lowrank
from gpcmc.covariance.conditioned import LowRankConditioned, LowRankConditions, SoftmaxLowRank
from gpcmc.covariance.kernels import check_kernel
from gpcmc.gaussian import ep, softmax_mode
from gpcmc.gaussian.importance import Proposal
from gpcmc.gaussian.laplace import Laplace
from gpcmc.gaussian.softmax_mode import MulticlassLaplace
from gpcmc.likelihood import logistic, probit, softmax, tilted

RBF, LAPLACE, LOGISTIC, EP = (
    test_evidence.KERNELS["rbf"],
    *(test_evidence.METHODS[name] for name in ("laplace", "logistic", "ep")),
)


GRADIENT, TRACES = (
    test_evidence.test_gradients_are_central_differences,
    test_evidence.test_one_matrix_says_what_traces_with_inverses_say,
)
CONDITIONED, SEVERAL, PREDICTED = (
    test_covariance.test_conditioning_is_that_of_dense_matrices,
    test_covariance.test_conditioning_of_several_functions_is_that_of_dense_matrices,
    test_covariance.test_predictions_are_those_of_dense_matrices,
)
CONTRACTED = test_covariance.test_contractions_are_traces_with_differences
LEFT_OUT = test_covariance.test_probabilities_are_corrected_and_their_error_is_told
DENSE_SOFTMAX = test_multiclass.test_evidence_and_covariances_are_those_of_dense_matrices
LOW = "low rank, given"
MUTANTS = {
    # the binary methods' gradients
    "no change of the mode": Mutant(
        Laplace.gradient, "(posterior.a, v,", "(posterior.a, 0.0,", GRADIENT, (LAPLACE, RBF)
    ),
    "no change of the mode, logistic": Mutant(
        Laplace.gradient, "(posterior.a, v,", "(posterior.a, 0.0,", GRADIENT, (LOGISTIC, RBF)
    ),
    "s with the other sign": Mutant(
        Laplace.gradient, "s = 0.5 *", "s = -0.5 *", GRADIENT, (LAPLACE, RBF)
    ),
    "(I + W K) for (I + K W)": Mutant(
        Laplace.gradient, "s - posterior.conditioned.solve(covariance @ s)",
        "s - covariance @ posterior.conditioned.solve(s)", GRADIENT, (LAPLACE, RBF),
    ),
    "(I + W K) for (I + K W), by traces": Mutant(
        Laplace.gradient, "s - posterior.conditioned.solve(covariance @ s)",
        "s - covariance @ posterior.conditioned.solve(s)", TRACES, ("logistic",),
    ),
    "R with the other sign": Mutant(
        dense.gradient_array, "- M.conditioned", "+ M.conditioned", GRADIENT, (EP, RBF)
    ),
    # the likelihoods
    "probit's third derivative": Mutant(
        probit.third_derivative, "return y *", "return -y *",
        test_likelihood.test_derivatives_by_complex_step_and_differences, (probit.PROBIT,),
    ),
    "logistic's third derivative": Mutant(
        logistic.third_derivative, "return expit(f)", "return -expit(f)",
        test_likelihood.test_derivatives_by_complex_step_and_differences, (logistic.LOGISTIC,),
    ),
    "probit's third derivative, by the gradient": Mutant(
        probit.third_derivative, "return y *", "return -y *", GRADIENT, (LAPLACE, RBF)
    ),
    "logistic's third derivative, by the gradient": Mutant(
        logistic.third_derivative, "return expit(f)", "return -expit(f)", GRADIENT, (LOGISTIC, RBF)
    ),
    "a tilted variance with the other sign": Mutant(
        probit.Probit.tilted, "(1.0 - w)", "(1.0 + w)",
        test_likelihood.test_tilted_moments_by_quadrature, (probit.PROBIT, 7.0),
    ),
    "a peak that is not looked for": Mutant(
        tilted._Law.of.__func__, "_mode(derivatives, y, mean, variance)", "mean",
        test_likelihood.test_tilted_moments_by_quadrature, (probit.PROBIT, 300.0),
    ),
    # the sites
    "a cavity that keeps its site": Mutant(
        ep.cavities, "mean - cavity * a", "mean + 0.0 * a",
        test_gaussian.test_a_method_on_any_form_is_the_textbook_one, ("dense", "ep"),
    ),
    "log Z without the determinant": Mutant(
        ep._iterate, "- 0.5 * conditioned.log_determinant", "",
        test_gaussian.test_a_method_on_any_form_is_the_textbook_one, ("Markov chain", "ep"),
    ),
    "log Z without half of it": Mutant(
        ep._iterate, "np.log(joint) + squares", "squares",
        test_gaussian.test_a_method_on_any_form_is_the_textbook_one, (LOW, "ep"),
    ),
    "a weight without its determinant": Mutant(
        Proposal.log_weights, "- self.half_log_determinant", "",
        test_gaussian.test_importance_sampling_on_any_form_is_that_on_the_array, (LOW,),
    ),
    # several classes
    "line 16 without log M_ii": Mutant(
        dense.SoftmaxConditioned.of.__func__, "half + float(np.sum(np.log(M.diagonal())))", "half", DENSE_SOFTMAX
    ),
    "line 11 with the own block alone": Mutant(
        dense.SoftmaxConditioned.latent, 'np.einsum("cnt,dnt->tcd", u, u)',
        'np.einsum("cnt,cnt->tc", u, u)[:, :, None] * np.ones(len(b))', DENSE_SOFTMAX,
    ),
    "no change of the mode, several classes": Mutant(
        MulticlassLaplace.gradient, "(posterior.a, v,", "(posterior.a, 0.0,",
        test_multiclass.test_gradients_are_central_differences, (RBF,),
    ),
    "steps are not halved": Mutant(
        softmax_mode._climb, "psi >= least", "psi >= -np.inf",
        test_multiclass.test_psi_never_falls_where_full_newton_steps_overshoot, (36, 1.0),
    ),
    "rounding of log(1 + little) forgotten": Mutant(
        softmax_mode._certain_rounding, "return y.size *", "return 0 * y.size *",
        test_multiclass.test_the_rounding_of_certain_patterns_is_no_rise,
    ),
    # low rank
    "|I + S D| forgotten": Mutant(
        lowrank.LowRank.conditioned, "+ np.sum(np.log1p(S * self.D))", "", CONDITIONED, (LOW,)
    ),
    "a variance without that of e": Mutant(
        LowRankConditioned.variance.fget, "(self.K.D + s", "(0.0 + s", CONDITIONED, (LOW,)
    ),
    "|I + D W| without T": Mutant(
        conditioned._noise_precision, "np.sum(np.log(T)) +", "", SEVERAL, (LOW,)
    ),
    "classes that do not see each other": Mutant(
        SoftmaxLowRank.of.__func__, "A[row, column] = -P", "", SEVERAL, (LOW,)
    ),
    "the posterior without its shrinkage": Mutant(
        conditioned._shrinkage, "np.eye(len(V)) -", "np.eye(len(V)) + 0.0 *", SEVERAL, (LOW,)
    ),
    "a solution without its second term": Mutant(
        LowRankConditions._solve, "return Vx -", "return Vx + 0.0 *", CONDITIONED, (LOW,)
    ),
    "a gradient without the inducing inputs' own": Mutant(
        lowrank.LowRank.contract, "total = -0.5 * np.sum(BG", "total = 0.0 * np.sum(BG",
        CONTRACTED, ("low rank, inducing inputs", False),
    ),
    "a class's own share of the covariance alone": Mutant(
        correction.columns, "np.split(solved, len(V))", "np.split(0.0 * solved, len(V))",
        test_covariance.test_columns_and_products_of_the_gradient_matrix, (MulticlassLaplace(),),
    ),
    "no change of the mode, in the softmax's third derivatives": Mutant(
        softmax.half_slope_of_log_det, "- 2.0 * S_pi)", ")",
        test_gaussian.test_gradients_are_central_differences, ("low rank, pivoted", "softmax"),
    ),
    "a column's share with the old mean": Mutant(
        correction.shares, "- a**2 + z**2", "+ z**2",
        test_covariance.test_shares_of_several_classes_are_exact_at_fixed_likelihood_terms,
    ),
    # predictions under low rank
    "predictions without the exact cross-covariances": Mutant(
        induced.LowRankPredictor.latent, "Latent(means[0], variances[0], own, others)",
        "Latent(own.mean, variances[0], own, others)", LEFT_OUT, ("outliers", test_covariance.GAUSSIANS[0]),
    ),
    "weights that are not corrected": Mutant(
        induced.LowRankPredictor.latent, "[weights for _, weights in", "[self.a for _, weights in", LEFT_OUT,
        ("Matern", test_covariance.GAUSSIANS[2]),
    ),
    "an error that is not told": Mutant(
        induced.LowRankPredictor.latent, "own, others)", "own, ())", LEFT_OUT,
        ("twelve inputs, .1", test_covariance.GAUSSIANS[0]),
    ),
    "a hyperparameter below zero": Mutant(
        check_kernel, "(value < 0).any()", "False",
        test_covariance.test_hyperparameters_are_refused_by_name_and_value,
        (test_covariance.RBF(-1.0), "length_scale must be a finite number > 0; got -1.0", "dense"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_broken_version_turns_a_test_red(mutant, monkeypatch):
    turns_red(mutant, monkeypatch)
