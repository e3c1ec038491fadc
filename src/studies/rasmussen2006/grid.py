"""The book's grid of log l and log sf, and the points where it prints the evidence.

Plans import this module, so it imports nothing heavy.
"""

from __future__ import annotations

#: Where the book's evidence is best, (log l, log sf): Laplace's of two classes, EP's, Laplace's of ten classes.
PRINTED = {"laplace": (2.85, 2.35), "ep": (2.6, 4.1), "ten": (2.35, 2.6)}
#: The book's grid: 17 and 23 values, a step of 0.25, and all printed coordinates on it. Its ends are ours: we
#: chose them where the corner's probabilities lie in the printed interval, so that those two numbers are no cells.
STEP, LENGTHS, AMPLITUDES = 0.25, (1.1, 17), (-0.4, 23)


def grid(every: int) -> tuple[list[float], list[float]]:
    """Return every so many values of log l and of log sf, with the corner of short lengths and large amplitudes."""
    (low, lengths), (least, amplitudes) = LENGTHS, AMPLITUDES
    of_amplitude = range(amplitudes - 1, -1, -every)
    return (
        [round(low + STEP * k, 2) for k in range(0, lengths, every)],
        [round(least + STEP * k, 2) for k in sorted(of_amplitude)],
    )


def name(point: tuple[float, float]) -> str:
    """Return the name of a point (log l, log sf), as rows and seeds have it."""
    return f"l{point[0]:g}a{point[1]:g}"
