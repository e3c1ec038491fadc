"""The picture of the README of ``recheck``: intervals of ours over printed, and the verdicts that they lead to.

Every line is a call of `recheck.judge.one.judge_one`. Run with ``python benchmarks/verdicts.py``; writes
src/recheck/verdicts.png and the same as PDF in results/.
"""

from pathlib import Path

import numpy as np

from recheck.judge.one import judge_one
from recheck.report import style

COLOUR = {"agrees": style.BLUE, "differs": style.ORANGE, "undecided": style.GREY}
ROOT = Path(__file__).resolve().parents[1]
#: What is said of a line, the printed number (ours is one), our data sets, and how much these differ.
CASES = (
    ("ten data sets that differ by 10 %", "0.95", 10, 0.1),
    ("the same", "1.90", 10, 0.1),
    ("the same", "1.40", 10, 0.1),
    ("three data sets", "0.95", 3, 0.1),
    ("ten that differ by 50 %", "0.95", 10, 0.5),
    ("the same", "4.50", 10, 0.5),
)


def main():
    normal = {n: np.random.default_rng(n).standard_normal(n) for n in (3, 10)}
    with style.style():
        drawn = style.figure(2.6, width=5.6)
        axes = drawn.add_subplot(xscale="log", xlabel="ours over printed", xlim=(0.08, 8))
        axes.axvspan(0.5, 2, color="#e8f1f8", label="margin: a factor of two")
        axes.axvline(1, color=style.INK, lw=0.6)
        for place, (name, printed, n, spread) in enumerate(CASES):
            z = (normal[n] - normal[n].mean()) / normal[n].std(ddof=1)
            found = judge_one(printed, np.exp(spread * z))
            colour = COLOUR[found.verdict]
            axes.plot([found.low, found.high], [-place, -place], color=colour, lw=2.5)
            axes.plot(found.effect, -place, "o", color=colour)
            axes.text(8.6, -place, found.verdict, color=colour, va="center", fontsize=9)
            axes.text(
                0.074,
                -place,
                f"{name}; printed {printed}, ours 1",
                ha="right",
                va="center",
                fontsize=8,
            )
        axes.set_yticks([])
        axes.grid(axis="y", visible=False)
        axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
        axes.minorticks_off()
        drawn.legend(loc="outside upper center")
        style.save(drawn, ROOT / "results/verdicts.pdf", ROOT / "src/recheck/verdicts.png")


if __name__ == "__main__":
    main()
