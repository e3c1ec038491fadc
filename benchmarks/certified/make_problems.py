"""Makes problems.json from kept rows, and the tables of docs/certified.rst; or adds a problem of your own.

    python benchmarks/certified/make_problems.py
    python benchmarks/certified/make_problems.py add NAME data.csv --alpha 3 --beta 2

A problem is certified by two methods that share no code beyond the covariance, checks and diagnostics of weights: one
integrates the orthant (minimax tilting, twisted expectation propagation), the other the latent values (importance
sampling from expectation propagation or Laplace's method, annealed elliptical slice sampling). Both need the status ok
and a standard error of at most 0.01 nats. All methods that are listed agree with the best one within four standard
errors: 237 problems with 433 such comparisons have a false alarm about once in 36 times.

data.csv has a line a pattern, features and then the label -1 or 1. What was added stays when the file is made again.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
from certified import FILE, digest

from studies.atiya2021.advice.data import real_data
from studies.atiya2021.advice.names import DATA_SETS
from studies.atiya2021.names import data_set_seed
from studies.atiya2021.problems import SYNTHETIC, synthetic_problem
from studies.atiya2021.scaling import two_normals
from studies.common.seeds import generator

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "data/reference/atiya2021"
#: Rows of an earlier study of scaling (commit 38786715), with six kernels laid over two normal classes.
SCALING = Path(__file__).with_name("rows.csv.gz")
SEED = 20210308
LARGEST, Z = 0.01, 4.0
#: Simulated data sets with so many patterns of which the file has two: with ten it would be half as large again.
HEAVY = 2000
#: Features are rounded to so many decimals. That moves log evidences by less than 1e-5 nats: no stated error is less.
DECIMALS, LEAST = 8, 1e-5
#: Kept rows by the name of their method here.
ROWS = {
    "twisted-ep": "reference-twisted-ep",
    "minimax-tilting": "reference-minimax-tilting",
    "importance-ep": "importance-ep",
}
#: Pairs that share no code.
PAIRS = [
    ("minimax-tilting", "importance-ep"),
    ("twisted-ep", "latent annealing"),
    ("twisted-ep", "Laplace importance sampling"),
]
MANY = "the law of Problem {law} of Atiya et al. (2021)"


def data_entry(source, X, y, X_test=None):
    def rounded(array):
        return (np.round(array, DECIMALS) + 0.0).tolist()

    entry = {"source": source, "X": rounded(X), "y": "".join("+" if one > 0 else "-" for one in y)}
    entry |= {} if X_test is None else {"X_test": rounded(X_test)}
    return entry | {"sha256": digest(entry)}


def certified(name, data, alpha, beta, found, **more):
    """An entry, or None if no pair certifies it; `found` has value, error and status by method."""
    good = {
        method: [float(value), max(float(error), LEAST)]
        for method, (value, error, status) in found.items()
        if status in ("ok", "certified") and error <= LARGEST
    }
    if not any(one in good and two in good for one, two in PAIRS):
        return None
    best = min(good, key=lambda method: good[method][1])
    value, error = good[best]
    if any(abs(x - value) > Z * np.hypot(s, error) for x, s in good.values()):
        return None
    entry = {"name": name, "data": data, "alpha": float(alpha), "beta": float(beta)}
    entry |= {"log_evidence": value, "standard_error": error, "methods": good, **more}
    return entry | {"sha256": digest(entry)}


def of_rows(rows):
    """Value, error and status by method, from kept rows of one problem."""
    own = rows.set_index("method")[["log_evidence", "log_evidence_se", "status"]]
    return {name: tuple(own.loc[row]) for name, row in ROWS.items() if row in own.index}


def scaling():
    """Simulated patterns of 50 to 2000, by kernel."""
    rows = pd.read_csv(SCALING, low_memory=False)
    for (kernel, n, dataset), own in rows.groupby(["kernel", "N", "dataset"], sort=False):
        if n >= HEAVY and dataset >= 2:
            continue
        first = own.iloc[0]
        inputs = int(first["inputs"])
        data = f"gauss{inputs}-N{n}-{dataset}"
        entry = certified(f"{kernel}/N{n}/{dataset}", data, *first[["alpha", "beta"]], of_rows(own))
        law = MANY.format(law={2: 6, 8: 5}[inputs])
        yield (
            entry,
            lambda d=inputs, n=n, seed=first["data"], law=law: (law, *two_normals(d, n, seed)),
        )


def experiment4():
    """The simulated problems of Table 4, with test inputs."""
    rows = pd.read_csv(KEPT / "certified/evidence.csv")
    arrays = np.load(KEPT / "certified/probabilities.npz")
    for row in rows[rows["problem"].isin(list(SYNTHETIC))].to_dict("records"):
        number, verdict = row["problem"], row["verdict"]
        found = {
            "twisted-ep": (row["log_evidence"], row["log_evidence_se"], verdict),
            row["certifier"]: (row["certifier_log_evidence"], row["certifier_se"], verdict),
        }
        key = f"problem{number}_set{row['set']}"
        more = {"probability": arrays[key], "probability_error": arrays[f"{key}_se"]}
        more = {name: np.round(array, 9).tolist() for name, array in more.items()}
        name, data = f"problem{number}/set{row['set']}", f"problem{number}"
        entry = certified(name, data, row["alpha"], row["beta"], found, **more)

        def made(number=number):
            one = synthetic_problem(number, generator(data_set_seed(number, 0, SEED)))
            return f"Problem {number} of Atiya et al. (2021)", one.X_train, one.y_train, one.X_test

        yield entry, made


def packaged():
    """Data sets that ship with scikit-learn, with fitted hyperparameters."""
    rows = pd.read_csv(KEPT / "advice.csv", low_memory=False)
    # the rule's runs, which have replicates, are short
    rows = rows[(rows["kernel"] == "fitted") & rows["replicate"].isna() & (rows["N"] >= 50)]
    for name, own in rows.groupby("data", sort=False):
        if DATA_SETS[name].registered:
            continue
        first = own.iloc[0]
        entry = certified(f"packaged/{name}", name, *first[["alpha", "beta"]], of_rows(own))

        def made(name=name):
            one = real_data(name, SEED)
            source = f"scikit-learn, load_{DATA_SETS[name].origin}, standardised"
            return source, one.X_train, one.y_train

        yield entry, made


def build():
    """The whole content of the file but for what was added."""
    data, problems = {}, []
    for entry, made in [*scaling(), *experiment4(), *packaged()]:
        if entry is not None:
            problems.append(entry)
            if entry["data"] not in data:
                data[entry["data"]] = data_entry(*made())
    return {"format": 1, "data": data, "problems": problems}


def write(content, path=FILE):
    """A line a data set and a problem, so that a change is a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(own)}" for name, own in content["data"].items()]
    problems = [json.dumps(own) for own in content["problems"]]
    text = '{"format": 1,\n"data": {\n%s\n},\n"problems": [\n%s\n]}\n'
    path.write_text(text % (",\n".join(lines), ",\n".join(problems)), encoding="utf-8")


def added(path=FILE):
    """What `add` put there: data and problems."""
    if not path.exists():
        return {}, []
    old = json.loads(path.read_text(encoding="utf-8"))
    problems = [own for own in old["problems"] if own["name"].startswith("added/")]
    return {own["data"]: old["data"][own["data"]] for own in problems}, problems


def add(name, X, y, alpha, beta, source="added", path=FILE, most=2**20):
    """Certify a problem, and put it into the file under ``added/<name>``."""
    from gpcmc.gp import prior, rbf
    from gpcmc.inference import METHODS

    gp, found = prior(rbf(alpha, beta), X), {}
    for method, options in (
        ("minimax-tilting", lambda m: {"points": m // 16, "randomizations": 16}),
        ("importance", lambda m: {"proposal": "ep", "samples": m}),
    ):
        label, samples = "importance-ep" if method == "importance" else method, 2**13
        while samples <= most:
            one = METHODS[method](**options(samples)).fit(gp, y, rng=np.random.default_rng(samples))
            found[label] = one.log_evidence, one.log_evidence_se, one.status
            print(
                f"{label}, {samples} samples: {one.log_evidence:.5f} +- {one.log_evidence_se:.5f}, {one.status}"
            )
            if one.status == "ok" and one.log_evidence_se <= LARGEST:
                break
            samples *= 4
    entry = certified(f"added/{name}", f"added-{name}", alpha, beta, found)
    if entry is None:
        raise SystemExit(
            f"{name}: not certified; needed are two methods that agree, each to {LARGEST} nats"
        )
    content = json.loads(path.read_text(encoding="utf-8"))
    content["data"][entry["data"]] = data_entry(source, X, y)
    rest = [own for own in content["problems"] if own["name"] != entry["name"]]
    write(content | {"problems": [*rest, entry]}, path)


def tables(content):
    """The tables of docs/certified.rst: all problems, and how far kept runs of each method are off."""
    known = {own["name"]: own for own in content["problems"]}
    listed = [
        {
            "problem": own["name"],
            "N": len(content["data"][own["data"]]["y"]),
            "inputs": len(content["data"][own["data"]]["X"][0]),
            "alpha": f"{own['alpha']:.4g}",
            "beta": f"{own['beta']:.4g}",
            "log evidence": f"{own['log_evidence']:.5f}",
            "standard error": f"{own['standard_error']:.5f}",
            "certified by": ", ".join(own["methods"]),
        }
        for own in known.values()
    ]
    rows = pd.read_csv(SCALING, low_memory=False)
    rows["name"] = rows["kernel"] + "/N" + rows["N"].astype(str) + "/" + rows["dataset"].astype(str)
    rows = rows[rows["name"].isin(list(known)) & ~rows["method"].str.startswith("reference")]
    truth = rows["name"].map(lambda name: known[name]["log_evidence"])
    rows["error"] = (rows["log_evidence"] - truth).abs()
    lines = []
    for method, own in rows.groupby("method"):
        line = {"method": method, "runs": len(own), "not ok": int((own["status"] != "ok").sum())}
        medians = own.groupby("N")["error"].median()
        line |= {f"N = {n}": _short(medians.get(n)) for n in sorted(rows["N"].unique())}
        line["largest, ok"] = _short(own.loc[own["status"] == "ok", "error"].max())
        lines.append(line)
    return pd.DataFrame(listed), pd.DataFrame(lines)


def _short(value):
    return "" if value is None or np.isnan(value) else f"{value:.2g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command")
    one = commands.add_parser("add", help="certify a problem, and add it")
    one.add_argument("name")
    one.add_argument("data", type=Path)
    one.add_argument("--alpha", type=float, required=True)
    one.add_argument("--beta", type=float, required=True)
    one.add_argument("--source", default="added")
    given = parser.parse_args()
    if given.command == "add":
        table = np.loadtxt(given.data, delimiter=",", ndmin=2)
        add(given.name, table[:, :-1], table[:, -1], given.alpha, given.beta, given.source)
    else:
        data, problems = added()
        content = build()
        write(
            content | {"data": content["data"] | data, "problems": content["problems"] + problems}
        )
    content = json.loads(FILE.read_text(encoding="utf-8"))
    for name, table in zip(("certified", "certified_methods"), tables(content), strict=True):
        table.to_csv(ROOT / f"docs/{name}.csv", index=False)
    print(f"{len(content['problems'])} problems, {FILE.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
