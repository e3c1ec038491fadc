"""Rectangle probabilities: error and CPU seconds of each method, and of other packages, in one run on one core.

Each row is one call: the estimate of log P, its standard error, the error where the truth is known, CPU seconds of all
of the call, and what the result says of itself. The Matern problems are on a regular grid (Matern 3/2, range .1 as R's
GpGp means it, nugget .03, unit square); those of Cao and Katzfuss themselves are in benchmarks/vecchia.py. The truth of
these is a longer run, with other random numbers, whose standard error is in its row.

The packages are SciPy, mvtnorm of R, MVNXPB of BoTorch, and for an orthant scikit-learn's classifier. ``make peer-r
peer-botorch`` sets up what can be; what is not there is shown as missing.

``python benchmarks/rectangle.py [word of a problem's name ...]`` writes docs/rectangle.csv, where other problems stay,
and docs/rectangle.png; ``--only BoTorch`` (or mvtnorm) runs that package alone, beside the truths that are there.
``--small`` measures single calls and batches of few coordinates beside SciPy, and the likelihood of a multinomial
probit, and writes docs/small.csv and docs/choice.csv. ``--draw`` draws the picture of docs/rectangle.csv again.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
import sklearn
from scipy.special import gammaln, ndtr
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import PairwiseKernel

from gpcmc import orthant_probability, rectangle_probability
from studies.common.figures import look_of

ROOT = Path(__file__).resolve().parents[1]
HERE, BUILD = ROOT / "benchmarks/peers", ROOT / "build/peers"
INF = np.inf
METHODS = ("auto", "minimax-tilting", "twisted-ep", "separation")
SECONDS = 60.0  # SciPy's evaluations are as many as it can make in about so long
#: Standard errors from the truth beyond which an error bar is wrong.
FAR = 4.0
LONGEST = 1800.0  # seconds that another package may take
COLUMNS = [
    "problem", "package", "method", "log_probability", "error", "standard_error", "cpu_seconds", "note",
]  # fmt: skip


def equicorrelated(n):
    return 0.5 * (np.eye(n) + 1.0)


def one_factor(n, lower, upper):
    """Equal correlations of one half: log P by the trapezoidal rule over the factor."""
    u, step = np.linspace(-20, 20, 8001, retstep=True)
    root = np.sqrt(0.5)
    p = ndtr((upper - root * u) / root) - ndtr((lower - root * u) / root)
    return np.log(np.sum(norm.pdf(u) * p**n) * step)


def chain(n, phi):
    """The orthant of a stationary AR(1): one coordinate integrated after the other."""
    node, weight = np.polynomial.legendre.leggauss(200)
    x, w = 4.5 * (1 + node), 4.5 * weight
    step = norm.pdf(x[:, None], phi * x, np.sqrt(1 - phi**2)) * w
    f, log_p = norm.pdf(x), 0.0
    for _ in range(n - 1):
        log_p += np.log(f.sum())
        f = step @ (f / f.sum())
    return log_p + np.log(w @ f)


def grid(n):
    side = round(np.sqrt(n))
    return np.stack(np.meshgrid(*2 * [np.linspace(0, 1, side)]), -1).reshape(-1, 2)


def matern(n):
    """As R's GpGp has it, which their package takes: (1 + d / range) exp(-d / range), without a root of three."""
    X = grid(n)
    distance = np.linalg.norm(X[:, None] - X, axis=-1) / 0.1
    return (1 + distance) * np.exp(-distance) + 0.03 * np.eye(n)


def problems():
    """Name, limits, covariance, log P or NaN, tolerance."""
    n = 200
    yield "equal, n = 200", 0, INF, equicorrelated(n), -np.log(n + 1), 2e-3
    tridiagonal = np.eye(30) - 0.5 * (np.eye(30, k=1) + np.eye(30, k=-1))
    yield "tridiagonal, n = 30", 0, INF, tridiagonal, -gammaln(32), 1e-3
    yield "tail, n = 100", 3, INF, equicorrelated(100), one_factor(100, 3, INF), 5e-3
    yield "box, n = 20", -1, 2, equicorrelated(20), one_factor(20, -1, 2), 1e-3
    A = 0.9 ** np.abs(np.subtract.outer(np.arange(1000), np.arange(1000)))
    yield "AR(.9), n = 1000", 0, INF, A, chain(1000, 0.9), 0.1
    yield "Matern, n = 900, orthant", 0, INF, matern(900), np.nan, 0.1
    yield "Matern, n = 900, above -1", -1, INF, matern(900), np.nan, 0.1
    yield "Matern, n = 900, box", -1, 1, matern(900), np.nan, 0.1


def timed(call):
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def truth_of(lower, upper, cov):
    """Log P and its standard error by a longer run, a package and what it says of itself."""
    seconds, found = timed(
        lambda: rectangle_probability(
            lower, upper, cov=cov, method="twisted-ep", tolerance=0.02, max_samples=2**18, rng=1
        )
    )
    note = f"{found.status} ({found.samples} samples): the truth of this problem"
    return found.log_probability, found.standard_error, seconds, note


def ours(lower, upper, cov, tolerance):
    for method in METHODS:
        most = 2**15 if len(cov) >= 900 else 2**20
        options = {"method": method, "tolerance": tolerance, "max_samples": most, "rng": 0}
        seconds, found = timed(
            lambda options=options: rectangle_probability(lower, upper, cov=cov, **options)
        )
        note = f"{found.status} ({found.method}, {found.samples})"
        yield "gpcmc", method, found.log_probability, found.standard_error, seconds, note


def sequential(lower, upper, cov):
    if upper < INF:
        return
    samples = 2000 if len(cov) >= 900 else 100_000
    seconds, found = timed(
        lambda: orthant_probability(
            cov,
            lower=float(lower),
            samples=samples,
            scheme="adapted",
            count="soft",
            rng=np.random.default_rng(0),
        )
    )
    note = f"{samples} samples, {found.effective_eves:.0f} eves"
    yield "gpcmc", "orthant, adapted", found.log_probability, found.standard_error, seconds, note


def scipys(lower, upper, cov):
    n, package = len(cov), f"SciPy {scipy.__version__}"
    if n >= 900:  # its time grows with n^2 for each point: an hour
        yield package, "Genz-Bretz", np.nan, np.nan, np.nan, "left out: an hour"
        return
    points = int(SECONDS * 2e7 / n**2)
    seconds, p = timed(
        lambda: multivariate_normal.cdf(
            np.full(n, float(upper)),
            cov=cov,
            lower_limit=np.full(n, float(lower)),
            maxpts=points,
            abseps=0.0,
            releps=1e-4,
            rng=np.random.default_rng(0),
        )
    )
    with np.errstate(divide="ignore"):
        yield package, "Genz-Bretz", float(np.log(p)), np.nan, seconds, f"maxpts={points}"


def sklearns(lower, upper, cov):
    """Laplace's method of an orthant: cov is s (K + I), s its least eigenvalue, and K the prior of a probit model.

    The classifier wants two classes: every second coordinate changes its sign. It has the logistic likelihood, which a
    covariance times 1.702^2 brings near the probit; what is left of the difference counts as its error.
    """
    if (lower, upper) != (0, INF):
        return
    least = 0.999 * np.linalg.eigvalsh(cov)[0]
    y = np.where(np.arange(len(cov)) % 2, 1.0, -1.0)
    K = 1.702**2 * (cov / least - np.eye(len(cov))) * np.outer(y, y)
    kernel = PairwiseKernel(metric="precomputed")
    seconds, found = timed(lambda: GaussianProcessClassifier(kernel, optimizer=None).fit(K, y))
    log_p = found.log_marginal_likelihood_value_
    yield f"scikit-learn {sklearn.__version__}", "Laplace", log_p, np.nan, seconds, "logistic"


def others(lower, upper, cov, only=("mvtnorm", "BoTorch")):
    """mvtnorm and BoTorch, each in a process of its own."""
    botorch = [BUILD / "botorch/bin/python", HERE / "mvnxpb_peer.py"]
    calls = [
        ("mvtnorm", f"Genz-Bretz, {points}", ["Rscript", HERE / "rectangle_peer.R"], [points])
        for points in ((25_000,) if len(cov) >= 900 else (25_000, 1_000_000))
    ]
    calls.append(("BoTorch", "MVNXPB", botorch, []))
    one_core = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    env = os.environ | one_core
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "covariance.csv")
        np.savetxt(file, cov, delimiter=",", fmt="%.17g")
        for package, method, command, more in calls:
            if package not in only:
                continue
            limits = [
                str(x).capitalize() if package == "mvtnorm" else str(x) for x in (lower, upper)
            ]
            try:
                done = subprocess.run(
                    [*map(str, command), str(file), *limits, *map(str, more)],
                    env=env, capture_output=True, text=True, timeout=LONGEST,
                )  # fmt: skip
            except (FileNotFoundError, subprocess.TimeoutExpired) as error:
                late = isinstance(error, subprocess.TimeoutExpired)
                why = f"not done after {LONGEST:.0f} s" if late else "not installed"
                yield package, method, np.nan, np.nan, np.nan, why
                continue
            if done.returncode:
                said = (done.stderr.strip().splitlines() or [""])[-1]
                missing = "No module named" in said or "no package called" in done.stderr
                why = "not installed" if missing else f"failed: {said[:100]}"
                yield package, method, np.nan, np.nan, np.nan, why
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            p = found.get("probability", np.nan)
            with np.errstate(divide="ignore", invalid="ignore"):
                log_p = found.get("log_probability", float(np.log(p)))
                se = found.get("standard_error", np.nan) / np.float64(p)
            note = "the probability is zero to rounding" if p == 0 else ""
            yield found["version"], method, log_p, se, found["cpu_seconds"], note


def measure(words, only=None, truths=None):
    """Rows of the problems whose names have one of the words; of one package alone, beside truths by problem."""
    for name, lower, upper, cov, truth, tolerance in problems():
        if words and not any(word in name for word in words):
            continue
        if only:
            truth = truths.get(name, truth)
            for package, method, log_p, *rest in others(lower, upper, cov, [only]):
                yield name, package, method, log_p, log_p - truth, *rest
            continue
        if np.isnan(truth):
            truth, se, seconds, note = truth_of(lower, upper, cov)
            yield name, "gpcmc", "twisted-ep, long", truth, np.nan, se, seconds, note
        for by in (ours, sequential, scipys, sklearns, others):
            given = (lower, upper, cov, tolerance) if by is ours else (lower, upper, cov)
            for package, method, log_p, *rest in by(*given):
                yield name, package, method, log_p, log_p - truth, *rest


def cpu(call, times):
    """The least CPU seconds of so many calls."""
    found = INF
    for _ in range(times):
        begun = time.process_time()
        call()
        found = min(found, time.process_time() - begun)
    return found


def small():
    """Single calls beside SciPy's at its default error; batches of 10,000 boxes and orthants; gradients."""
    rows = []

    def row(problem, *seconds):
        rows.append([problem, *(1e3 * one for one in seconds)])
        print(*rows[-1], flush=True)

    def alone(n):
        cov, lower, upper = equicorrelated(n), np.full(n, -1.0), np.full(n, 1.5)
        ours = cpu(lambda: rectangle_probability(lower, upper, cov=cov, rng=0), 30)
        coarse = {"cov": cov, "rng": 0, "tolerance": 1e-2}
        quick = cpu(lambda: rectangle_probability(lower, upper, **coarse), 30)
        theirs = cpu(lambda: multivariate_normal.cdf(upper, cov=cov, lower_limit=lower), 30)
        row(f"one box, n = {n}", ours, quick, theirs)

    def together(n, m, some):
        lower = rng.standard_normal((m, n)) - 1.0
        upper = lower + rng.exponential(2.0, (m, n))
        A = rng.standard_normal((m, n, n + 2))
        cov = A @ A.transpose(0, 2, 1)
        few = list(zip(upper[:some], cov[:some], strict=True))
        theirs = cpu(lambda: [multivariate_normal.cdf(u, cov=c) for u, c in few], 1) * m / some
        ours = cpu(lambda: rectangle_probability(-INF, upper, cov=cov), 3)
        row(f"{m:,} orthants, n = {n}", ours, ours, theirs)
        ours = cpu(lambda: rectangle_probability(lower, upper, cov=cov), 3)
        row(f"{m:,} boxes, n = {n}", ours, ours, np.nan)
        found = rectangle_probability(lower, upper, cov=cov)
        ours = cpu(found.gradient, 2)
        row(f"gradients of {m:,} boxes, n = {n}", ours, ours, np.nan)

    for n in (1, 2, 3, 4, 5):
        alone(n)
    rng = np.random.default_rng(0)
    for n in (1, 2, 3):
        together(n, 10_000, 50)
    names = ["problem", "ours", "ours at tolerance .01", f"SciPy {scipy.__version__}"]
    table = pd.DataFrame(rows, columns=names)
    table.to_csv(ROOT / "docs/small.csv", index=False, float_format="%.3g")
    choice(10_000)


def choice(m):
    """Log likelihood of m choices among four, and its gradient in all means and covariances."""
    rng, beta = np.random.default_rng(1), np.array([1.0, -0.5])
    x = rng.standard_normal((m, 4, 2))
    S = 0.5 * np.eye(4) + 0.5
    chosen = (x @ beta + rng.multivariate_normal(np.zeros(4), S, m)).argmax(axis=1)
    D = np.array([np.delete(np.eye(4), i, axis=0) - np.eye(4)[i] for i in range(4)])
    mean, cov = D[chosen] @ x @ beta, (D @ S @ D.transpose(0, 2, 1))[chosen]
    found = rectangle_probability(-INF, 0.0, mean=mean, cov=cov)
    rows = [
        [
            "gpcmc",
            cpu(lambda: rectangle_probability(-INF, 0.0, mean=mean, cov=cov), 3),
            cpu(found.gradient, 2),
        ]
    ]
    rows[0].append(float(found.standard_error.max()))
    some = 200
    begun = time.process_time()
    theirs = [multivariate_normal.cdf(np.zeros(3), mean[k], cov[k]) for k in range(some)]
    error = np.abs(np.log(theirs) - found.log_probability[:some]).max()
    rows.append(
        [f"SciPy {scipy.__version__}", (time.process_time() - begun) * m / some, np.nan, error]
    )
    names = ["package", "likelihood, s", "gradient, s", "largest error of log P, nats"]
    pd.DataFrame(rows, columns=names).to_csv(
        ROOT / "docs/choice.csv", index=False, float_format="%.2g"
    )
    print(rows)


def picture(table, path):
    """Error against CPU seconds, a panel a problem; hollow where a result is not to be trusted.

    It says so itself, or is further from the truth than `FAR` of its standard errors.
    """
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(table["problem"]))
    figure, axes = plt.subplots(
        2, -(-len(names) // 2), figsize=(9.6, 5.6), squeeze=False, sharex=True, layout="constrained"
    )
    kind = table["method"].str.lower().replace("orthant, adapted", "adapted")
    kind = kind.mask(kind.str.startswith("genz-bretz"), "genz-bretz")
    table = table.assign(kind=kind, package=table["package"].str.extract(r"^([\w-]+)")[0])
    truths = table[table["method"] == "twisted-ep, long"].set_index("problem")["standard_error"]
    table = table[table["method"] != "twisted-ep, long"]
    looks = {key: look_of(*key) for key, _ in table.groupby(["package", "kind"], sort=False)}
    for place, name in zip(axes.flat, names, strict=False):
        long = truths.get(name, 0.0)
        seen = table[(table["problem"] == name) & np.isfinite(table["error"])]
        for key, rows in seen.groupby(["package", "kind"]):
            far = rows["error"].abs() > FAR * np.hypot(rows["standard_error"], long)
            trusted = ~(rows["note"].fillna("").str.contains("not trusted") | far)
            for how, which in ((looks[key].points, trusted), (looks[key].hollow, ~trusted)):
                errors = rows["error"][which].abs().clip(lower=1e-5)
                place.plot(rows["cpu_seconds"][which], errors, **how)
        if long > 0:
            place.axhline(long, color="0.6", linestyle=":")
        place.set(xscale="log", yscale="log")
        place.set_title(name, fontsize="medium")
    for place in axes[:, 0]:
        place.set_ylabel("error of log P, nats")
    for place in axes[-1]:
        place.set_xlabel("CPU seconds")
    there = {*table["package"][table["error"].notna()]}
    handles = [plt.Line2D([], [], **look.points) for look in looks.values()]
    names = [look.label + ": missing" * (key[0] not in there) for key, look in looks.items()]
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=160, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="words of problems' names")
    parser.add_argument(
        "--small", action="store_true", help="few coordinates, alone and many at once"
    )
    parser.add_argument("--only", choices=["mvtnorm", "BoTorch"], help="run this package alone")
    parser.add_argument(
        "--draw", action="store_true", help="draw the picture of docs/rectangle.csv"
    )
    given = parser.parse_args()
    file, found = ROOT / "docs/rectangle.csv", []
    if given.draw:
        picture(pd.read_csv(file), file.with_suffix(".png"))
        return
    rectangle_probability(0, INF, cov=equicorrelated(5), rng=0)  # imports
    if given.small:
        small()
        return
    order = [name for name, *_ in problems()]
    old = pd.read_csv(file, dtype=str, keep_default_na=False) if file.exists() else None
    truths = {}
    if old is not None:
        long = old[old["method"] == "twisted-ep, long"]
        truths = dict(zip(long["problem"], long["log_probability"].astype(float), strict=True))
    for row in measure(given.words, given.only, truths):
        found.append(row)
        print(*row, sep="  ", flush=True)
    table = pd.DataFrame(found, columns=COLUMNS)
    for column, digits in zip(COLUMNS[3:7], (".4f", ".1e", ".1e", ".2f"), strict=True):
        table[column] = [format(x, digits) if np.isfinite(x) else "" for x in table[column]]
    if old is not None:
        again = old["problem"].isin(table["problem"])
        if given.only:
            again &= old["package"].str.startswith(given.only)
        table = pd.concat([old[~again], table])
        table = table[table["problem"].isin(order)]
    table = table.sort_values("problem", key=lambda of: of.map(order.index), kind="stable")
    table.to_csv(file, index=False, columns=COLUMNS)
    picture(pd.read_csv(file), file.with_suffix(".png"))


if __name__ == "__main__":
    main()
