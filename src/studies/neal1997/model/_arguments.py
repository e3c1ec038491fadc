"""Checks of arguments that several models share, on top of those of the whole library."""

from __future__ import annotations

from numpy.typing import ArrayLike

from gpcmc._validation import FloatArray, check_array


def check_shape(name: str, value: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Return `value` as a finite, C-contiguous float64 array of this shape.

    Raises
    ------
    ValueError
        If it is not numeric, has another shape, or holds NaN or infinity.
    """
    array = check_array(name, value, ndim=len(shape))
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got {array.shape}")
    return array


def check_training_inputs(X: ArrayLike) -> FloatArray:
    """Return training inputs (n, d) as a finite, C-contiguous float64 array.

    Raises
    ------
    ValueError
        If X is not a finite array of two dimensions, or is empty.
    """
    array = check_array("X", X, ndim=2)
    if 0 in array.shape:
        raise ValueError(f"X must not be empty; got shape {array.shape}")
    return array


def check_test_inputs(X_star: ArrayLike, d: int) -> FloatArray:
    """Return test inputs (m, d) as a finite, C-contiguous float64 array.

    Raises
    ------
    ValueError
        If X_star is not a finite array of two dimensions, or the training inputs have another number of columns.
    """
    array = check_array("X_star", X_star, ndim=2)
    if array.shape[1] != d:
        raise ValueError(f"X_star must have {d} columns as X has; got {array.shape[1]}")
    return array
