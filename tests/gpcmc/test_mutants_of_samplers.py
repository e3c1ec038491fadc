"""Broken versions of chains and of the paper's sampler, each of which must turn a test of another file red."""

import pytest
import test_chains
import test_control_variables
import test_hyperparameter_chains
import test_orthant
from planted import Mutant, turns_red

from gpcmc.chains import annealing, controls, elliptical, hamiltonian, kernel
from gpcmc.chains import hyperparameter_steps as steps
from gpcmc.orthant import _reference, populations

MUTANTS = {
    "surrogate data without their density": Mutant(
        steps.surrogate_step, "        - here.log_density\n", "",
        test_hyperparameter_chains.test_acceptance_is_the_ratio_of_joint_densities, ("surrogate",),
    ),
    "AA without the prior": Mutant(
        steps.ancillary_step, "proposal.log_prior - state.log_prior + ", "",
        test_hyperparameter_chains.test_acceptance_is_the_ratio_of_joint_densities, ("ancillary",),
    ),
    "an estimate that is made anew": Mutant(
        steps.pseudo_marginal_step, "(state.log_prior + state.log_evidence)",
        "(state.log_prior + float(estimator(model.covariance(state.theta), model.y, rng)))",
        test_hyperparameter_chains.test_a_state_that_does_not_move_keeps_its_estimate,
    ),
    "an estimate that is made anew, its law": Mutant(
        steps.pseudo_marginal_step, "(state.log_prior + state.log_evidence)",
        "(state.log_prior + float(estimator(model.covariance(state.theta), model.y, rng)))",
        test_hyperparameter_chains.test_an_estimate_that_is_kept_keeps_the_law,
    ),
    "a height that is the likelihood's": Mutant(
        elliptical.step, " + draws.log_uniform", "",
        test_chains.test_slice_moves_are_those_of_the_textbook, (1.0, 60, 200),
    ),
    "a last half step that is whole": Mutant(
        hamiltonian.leapfrog, "else 0.5 * full", "else full",
        test_chains.test_leapfrog_is_reversible_and_keeps_the_energy_to_second_order,
    ),
    "the right end of each step of temperature": Mutant(
        annealing.anneal, "steps[0] * state.log_likelihood", "0.0 * state.log_likelihood",
        test_chains.test_the_ladder_and_the_end_of_each_step,
    ),
    "few values without Student's t": Mutant(
        kernel.student_factor, "stdtrit(degrees, 0.975)", "NORMAL_975",
        test_chains.test_standard_errors_see_chains_that_disagree,
    ),
    "a control variable that keeps its old value": Mutant(
        controls.step, "xi - state.u @ controls.directions[i]", "xi",
        test_control_variables.test_a_step_line_by_line, (6, 3, True),
    ),
    # the paper's sampler
    "refills that are not sorted": Mutant(
        _reference.refilled, "np.sort(", "(",
        test_orthant.test_compiled_and_numpy_samplers_agree, (8, False, 0.0),
    ),
    "populations' spread without Bessel's factor": Mutant(
        populations._combine, "* runs / (runs - 1) if", "if",
        test_orthant.test_ten_populations_or_more_speak_for_themselves,
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_broken_version_turns_a_test_red(mutant, monkeypatch):
    turns_red(mutant, monkeypatch)
