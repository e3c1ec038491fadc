"""All problems by name, in the order in which they are run."""

from before import classifiers, gaussian, rectangles, refusals, sampling

PROBLEMS = (
    gaussian.PROBLEMS
    | sampling.PROBLEMS
    | rectangles.PROBLEMS
    | classifiers.PROBLEMS
    | refusals.PROBLEMS
)
