"""Broken versions of the mathematics, each of which must turn a test of another file red.

A mutant is a function in whose source one piece of text has another in its place. The test that has to notice it is
called as it is.
"""

import pytest
import test_evidence
import test_likelihood
import test_lowrank_multiclass
import test_multiclass
from gpcmc.lowrank.correction import GradientMatrix
from gpcmc.lowrank.multiclass import SoftmaxPrecision
from planted import Mutant, turns_red

from gpcmc.gaussian.ep import ExpectationPropagation
from gpcmc.gaussian.laplace import Laplace
from gpcmc.gaussian.softmax_mode import DensePrecision, MulticlassLaplace, MulticlassPosterior
from gpcmc.gp import likelihood
from gpcmc.inference import softmax_mode
from gpcmc.lowrank import multiclass as lowrank

RBF, LAPLACE, LOGISTIC, EP = (
    test_evidence.KERNELS["rbf"],
    *(test_evidence.METHODS[name] for name in ("laplace", "logistic", "ep")),
)


GRADIENT, TRACES = (
    test_evidence.test_gradients_are_central_differences,
    test_evidence.test_one_matrix_says_what_traces_with_inverses_say,
)
LOW_RANK = test_lowrank_multiclass.test_evidence_mode_and_covariances_are_those_of_dense_matrices
MUTANTS = {
    # the binary methods' gradients
    "no change of the mode": Mutant(
        Laplace.gradient_matrix, "np.outer(v + 0.5 * a, a)", "np.outer(0.5 * a, a)", GRADIENT, (LAPLACE, RBF)
    ),
    "no change of the mode, logistic": Mutant(
        Laplace.gradient_matrix, "np.outer(v + 0.5 * a, a)", "np.outer(0.5 * a, a)", GRADIENT, (LOGISTIC, RBF)
    ),
    "s with the other sign": Mutant(
        Laplace.gradient_matrix, "s = 0.5 *", "s = -0.5 *", GRADIENT, (LAPLACE, RBF)
    ),
    "(I + W K) for (I + K W)": Mutant(
        Laplace.gradient_matrix, "s - R @ (K @ s)", "s - K @ (R @ s)", GRADIENT, (LAPLACE, RBF)
    ),
    "(I + W K) for (I + K W), by traces": Mutant(
        Laplace.gradient_matrix, "s - R @ (K @ s)", "s - K @ (R @ s)", TRACES, ("logistic",)
    ),
    "EP's R with the other sign": Mutant(
        ExpectationPropagation.gradient_matrix, "- noise_precision", "+ noise_precision", GRADIENT, (EP, RBF)
    ),
    # the likelihoods
    "probit's third derivative": Mutant(
        likelihood.probit_third_derivative, "return y *", "return -y *",
        test_likelihood.test_derivatives_by_complex_step_and_differences, (likelihood.PROBIT,),
    ),
    "logistic's third derivative": Mutant(
        likelihood.logistic_third_derivative, "return expit(f)", "return -expit(f)",
        test_likelihood.test_derivatives_by_complex_step_and_differences, (likelihood.LOGISTIC,),
    ),
    "probit's third derivative, by the gradient": Mutant(
        likelihood.probit_third_derivative, "return y *", "return -y *", GRADIENT, (LAPLACE, RBF)
    ),
    "logistic's third derivative, by the gradient": Mutant(
        likelihood.logistic_third_derivative, "return expit(f)", "return -expit(f)", GRADIENT, (LOGISTIC, RBF)
    ),
    # several classes
    "line 16 without log M_ii": Mutant(
        DensePrecision.of.__func__, "half_log_det + float(np.sum(np.log(M.diagonal())))", "half_log_det",
        test_multiclass.test_evidence_and_covariances_are_those_of_dense_matrices,
    ),
    "line 11 with the own block alone": Mutant(
        MulticlassPosterior.latent, 'np.einsum("cnt,dnt->tcd", u, u)',
        'np.einsum("cnt,cnt->tc", u, u)[:, :, None] * np.ones(len(b))',
        test_multiclass.test_evidence_and_covariances_are_those_of_dense_matrices,
    ),
    "no change of the mode, several classes": Mutant(
        MulticlassLaplace.gradient_matrix, "(v + 0.5 * a).T", "(0.5 * a).T",
        test_multiclass.test_gradients_are_central_differences, (RBF,),
    ),
    "steps are not halved": Mutant(
        softmax_mode._climb, "psi >= least", "psi >= -np.inf",
        test_multiclass.test_psi_never_falls_where_full_newton_steps_overshoot, (36, 1.0, "monkeypatch"),
    ),
    "rounding of log(1 + little) forgotten": Mutant(
        softmax_mode._certain_rounding, "return y.size *", "return 0 * y.size *",
        test_multiclass.test_separable_classes_with_a_large_variance_converge, (12, 0.2, 1e5),
    ),
    "|I + D W| without T": Mutant(
        lowrank._noise_precision, "np.sum(np.log(T)) +", "", LOW_RANK, (3, 2.0)
    ),
    "classes that do not see each other": Mutant(
        SoftmaxPrecision.of.__func__, "A[row, column] = -P", "", LOW_RANK, (3, 0.0)
    ),
    "the posterior without its shrinkage": Mutant(
        lowrank._shrinkage, "np.eye(len(V)) -", "np.eye(len(V)) + 0.0 *", LOW_RANK, (3, 2.0)
    ),
    "a class's own share of the covariance alone": Mutant(
        GradientMatrix.columns, "np.split(solved, len(V))", "np.split(0.0 * solved, len(V))",
        test_lowrank_multiclass.test_the_matrix_of_the_gradient_is_the_dense_one, (2.0,),
    ),
    "no change of the mode, low rank": Mutant(
        softmax_mode.half_slope_of_log_det, "- 2.0 * S_pi)", ")",
        test_lowrank_multiclass.test_gradients_are_central_differences, (test_lowrank_multiclass.KERNELS[0],),
    ),
    "a column's share with the old mean": Mutant(
        GradientMatrix.shares, "- a**2 + z**2", "+ z**2",
        test_lowrank_multiclass.test_shares_of_further_columns_are_exact_at_fixed_likelihood_terms,
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_broken_version_turns_a_test_red(mutant, monkeypatch):
    turns_red(mutant, monkeypatch)
