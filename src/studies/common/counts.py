"""Counts that say how many pieces a job has. The workflow reads this module, so that it imports nothing."""


class Count(int):
    """An argument of a job: how many data sets, seeds or draws there are, each of them a piece of its own.

    It is no part of the key of a piece (`studies.common.pieces.record`): a larger count computes the missing pieces
    alone, and a smaller one nothing.
    """
