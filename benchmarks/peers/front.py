"""The picture of the front page, drawn from docs/peers.csv: one problem, one panel, every point named.

`make peers` draws it again; alone it is `python benchmarks/peers/front.py`.
"""

from pathlib import Path

import pandas as pd

from studies.common.figures import METHODS

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: The middle problem with the kernel that tells methods apart.
CELL = {"N": 400, "kernel": "rough"}
#: What is drawn, the method in our dictionary of looks, and where its name stands: alignment, and the shift in points.
NAMED = {
    ("gpcmc", "EP"): ("ep", "right", -7, 0),
    ("gpcmc", "Laplace"): ("laplace", "center", 0, -12),
    ("gpcmc", "twisted EP, 512 points"): ("twisted-ep", "left", 7, -3),
    ("gpcmc", "minimax tilting, 64 points"): ("minimax-tilting", "left", 7, -8),
    ("gpcmc", "orthant, 10000 samples"): ("sampler", "left", 7, 2),
    ("scikit-learn", "Laplace, logistic"): ("laplace", "left", 7, -1),
    ("GPy", "EP"): ("ep", "left", 7, 0),
    ("GPy", "Laplace"): ("laplace", "left", 7, -8),
    ("mvtnorm", "Genz-Bretz, 25000 points"): ("genz-bretz", "center", 0, -11),
}


def picture(table, path):
    """The larger of an error and its standard error against CPU seconds; filled is this library."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    rows = table[(table["N"] == CELL["N"]) & (table["kernel"] == CELL["kernel"])]
    rows = rows.set_index(["peer", "method"])
    figure, axes = plt.subplots(figsize=(4.4, 3.2), layout="constrained")
    for key, (method, side, right, up) in NAMED.items():
        if key not in rows.index:  # a peer that was not there
            continue
        seconds, *errors = rows.loc[key, ["cpu_seconds", "error_log_evidence", "standard_error"]]
        # a run that is closer than its standard error was lucky
        point = seconds, max(error for error in errors if not pd.isna(error))
        look, own = METHODS[method], key[0] == "gpcmc"
        axes.plot(*point, **look.points if own else look.hollow)
        name = look.label if own else f"{key[0]}, {look.label}"
        axes.annotate(
            name, point, (right, up), textcoords="offset points", ha=side, va="center",
            fontsize=9, color=look.color if own else "0.35",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(6e-3, 2e1), ylim=(4e-4, 3e1))
    axes.set(xlabel="CPU seconds", ylabel="error of the log evidence (nats)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=200, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    picture(pd.read_csv(DOCS / "peers.csv"), DOCS / "front.png")
