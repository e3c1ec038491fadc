"""Rows of values: how a problem records them, how they are kept, and how two tables are compared.

Kinds of rows:

``deterministic``
    agrees to 1e-8 of its largest entry. A row may name an algorithm whose stated tolerance is looser (`TOLERANCES`).
``optimum``
    the evidence where a search ended: no lower than it was, to the search's tolerance. Higher is listed, no failure.
``at optimum``
    what belongs to it: agrees to the search's tolerance where the evidence did.
``estimate``
    has a standard error with so many degrees of freedom: agrees within both errors.
    Where either run does not trust itself, nothing is compared.
``status``, ``refusal``
    are equal. A refusal is the type of the error and the argument that its message names.
``status by chance``
    turns with the draws, being near a limit of the diagnostics: a difference is listed, and no failure.
"""

import json
import re
import zlib
from dataclasses import dataclass, field

import numpy as np
from scipy.special import bdtrik, ndtr, ndtri, stdtr

from before import adapter

#: Largest difference over the largest entry of a row, by what the row says of itself.
TOLERANCES = {
    "deterministic": 1e-8,
    # sites of expectation propagation under a covariance of low rank move by less than 1e-4 when it stops
    "low-rank evidence": 1e-6,
    "low-rank sites": 3e-4,
    # L-BFGS-B stops where the evidence rises by less than 2e-9 of itself, which leaves theta open to its root
    "optimum": 1e-6,
    "at optimum": 3e-3,
    # climbed at inducing inputs, to a tenth of a tenth of a nat
    "low-rank optimum": 1e-4,
    "at low-rank optimum": 2e-2,
}
#: Rates at which equal laws are called different: any one entry of all rows, and the count of problems beyond `EACH`.
ANY, COUNT, EACH = 1e-3, 1e-3, 0.05


@dataclass
class Rows:
    """The rows of a problem, and its random numbers."""

    problem: str
    seed: int = 0
    found: dict = field(default_factory=dict)

    @property
    def rng(self):
        """A generator of the problem's own; `seed` other than 0 makes other draws of the same laws."""
        return np.random.default_rng(self.number)

    @property
    def number(self):
        """The same as a number."""
        return (zlib.crc32(self.problem.encode()) + 1_000_003 * self.seed) % 2**31

    def exact(self, quantity, value, tolerance="deterministic"):
        kind = "deterministic" if "optimum" not in tolerance else tolerance.replace("low-rank ", "")
        self._add(quantity, kind=kind, value=_rounded(value, 12), tolerance=tolerance)

    def estimate(self, quantity, value, error, degrees, status="ok"):
        value, error = _rounded(value, 10), _rounded(error, 4)
        trusted = {} if status == "ok" else {"trusted": False}
        self._add(quantity, kind="estimate", value=value, error=error, degrees=degrees, **trusted)

    def mean(self, quantity, groups, status="ok"):
        """An estimate from independent groups along the first axis."""
        groups = np.asarray(groups)
        error = groups.std(axis=0, ddof=1) / np.sqrt(len(groups))
        self.estimate(quantity, groups.mean(axis=0), error, len(groups) - 1, status)

    def status(self, quantity, value, by_chance=False):
        self._add(quantity, kind="status by chance" if by_chance else "status", value=value)

    def refusal(self, quantity, argument, call):
        """What `call` raises, and whether it names the argument, which the adapter may call otherwise."""
        word = re.escape(adapter.NAMES.get(argument, argument))
        try:
            call()
        except Exception as error:
            said = str(error)
            named = re.search(rf"(?<![\w.]){word}(?!\w)", said)
            value = f"{type(error).__name__}: {argument if named else said.split()[0]}"
        else:
            value = "accepted"
        self._add(quantity, kind="refusal", value=value)

    def _add(self, quantity, **row):
        if quantity in self.found:
            raise KeyError(f"{self.problem} has two rows {quantity}")
        self.found[quantity] = row


def _rounded(value, digits):
    array = np.asarray(value, dtype=float)
    return json.loads(
        json.dumps(array.tolist(), default=float),
        parse_float=lambda text: float(f"{float(text):.{digits}g}"),
    )


def write(table, path):
    """Keep a table, a row a line."""
    lines = []
    for problem, rows in table.items():
        inner = [f"  {json.dumps(q)}: {json.dumps(row)}" for q, row in rows.items()]
        lines.append(f"{json.dumps(problem)}: {{\n" + ",\n".join(inner) + "\n}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def read(path):
    return json.loads(path.read_text())


@dataclass(frozen=True)
class Difference:
    """Of one row. `size` is over the allowed one: the worst of its entries; `z` of an estimate, as of a normal law."""

    problem: str
    quantity: str
    kind: str
    before: object
    after: object
    size: float = 0.0
    relative: float = 0.0
    z: tuple = ()
    failed: bool = False
    said: str = ""


def compare(before, after):
    """The differences of all rows of two tables, in their order."""
    found = []
    for problem in [*before, *(p for p in after if p not in before)]:
        old, new = before.get(problem, {}), after.get(problem, {})
        moved = {q: _moved(old[q], new[q]) for q in old if q in new and old[q]["kind"] == "optimum"}
        for q in [*old, *(q for q in new if q not in old)]:
            if q not in old or q not in new:
                kind, said = (old.get(q) or new[q])["kind"], "missing" if q in old else "new"
                found.append(Difference(problem, q, kind, None, None, failed=True, said=said))
                continue
            found.append(_difference(problem, q, old[q], new[q], any(moved.values())))
    return _judged(found)


def _moved(old, new):
    """Whether a search ended elsewhere."""
    return _relative(old["value"], new["value"]) > TOLERANCES[old["tolerance"]]


def _relative(old, new):
    """Largest difference over the largest entry; equal infinities are no difference."""
    a, b = np.asarray(old, dtype=float), np.asarray(new, dtype=float)
    if a.shape != b.shape:
        return np.inf
    with np.errstate(invalid="ignore"):
        gap = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    gap = np.where(np.isnan(gap), np.inf, gap)
    scale = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    largest = gap.max(initial=0.0)
    return 0.0 if largest == 0 else float(largest / max(scale, 1e-300))


def _difference(problem, quantity, old, new, moved):
    one = {"problem": problem, "quantity": quantity, "kind": old["kind"]}
    one |= {"before": old["value"], "after": new["value"]}
    if old["kind"] != new["kind"]:
        return Difference(**one, failed=True, said=f"was {old['kind']}, is {new['kind']}")
    if isinstance(old["value"], str):
        differs = old["value"] != new["value"]
        failed = differs and old["kind"] != "status by chance"
        return Difference(**one, failed=failed, said="differs" if differs else "")
    if not (old.get("trusted", True) and new.get("trusted", True)):
        return Difference(**one)
    relative = _relative(old["value"], new["value"])
    if old["kind"] == "estimate":
        z, failed = _scores(old, new)
        said = "no errors, or other shapes" if failed else ""
        return Difference(**one, relative=relative, z=z, failed=failed, said=said)
    size = relative / TOLERANCES[old["tolerance"]]
    failed, said = size > 1, "differs" if size > 1 else ""
    if failed and old["kind"] == "optimum" and new["value"] > old["value"]:
        failed, said = False, "a higher optimum"
    if failed and old["kind"] == "at optimum" and moved:
        failed, said = False, "of another optimum"
    return Difference(**one, size=size, relative=relative, failed=failed, said=said)


def _scores(old, new):
    """The z scores of a row's entries: differences over both errors, by Student's law, as of a normal one."""
    a, b, s, t = (
        np.atleast_1d(np.asarray(x, dtype=float)).ravel()
        for x in (old["value"], new["value"], old["error"], new["error"])
    )
    if a.shape != b.shape:
        return (), True
    same = np.abs(a - b) <= TOLERANCES["deterministic"] * np.maximum(np.abs(a), 1e-300)
    same |= a == b
    error = np.hypot(s, t)
    if not (same | (np.isfinite(error) & (error > 0) & np.isfinite(a - b))).all():
        return (), True
    a, b, s, t, error = (x[~same] for x in (a, b, s, t, error))
    share = (s / error) ** 2
    degrees = 1.0 / (share**2 / old["degrees"] + (1.0 - share) ** 2 / new["degrees"])
    tail = stdtr(degrees, -np.abs(b - a) / error)
    z = np.zeros(len(same))
    z[~same] = np.sign(b - a) * -ndtri(np.maximum(tail, 1e-300))
    return tuple(z.tolist()), False


def _judged(found):
    """Fail what is beyond the rate `ANY` over all entries (Bonferroni's inequality, whatever depends on what)."""
    entries = sum(len(one.z) for one in found)
    limit = -ndtri(0.5 * ANY / max(entries, 1))
    return [
        one
        if one.failed or not one.z or np.abs(one.z).max() <= limit
        else Difference(**(vars(one) | {"failed": True, "said": f"|z| above {limit:.2f}"}))
        for one in found
    ]


def beyond(found):
    """Count problems whose entries together are beyond the rate `EACH`, and how many may be, at the rate `COUNT`.

    The problems' random numbers are independent, and those of the rows of one are not: theirs are taken together by
    Bonferroni's inequality.
    """
    tails = {}
    for one in found:
        if one.z:
            tails.setdefault(one.problem, []).extend(np.abs(one.z).tolist())
    smallest = [len(z) * 2.0 * float(ndtr(-max(z))) for z in tails.values()]
    count = int(sum(p < EACH for p in smallest))
    allowed = int(np.ceil(bdtrik(1.0 - COUNT, len(tails), EACH))) if tails else 0
    return count, allowed, len(tails)


def shares(found):
    """Shares of all entries of estimates whose |z| is above 1, 2 and 3."""
    z = np.abs(np.concatenate([np.array(one.z) for one in found if one.z] or [np.zeros(1)]))
    return {k: float(np.mean(z > k)) for k in (1, 2, 3)}, len(z)


def report(found, every=False):
    """The table of differences as text: rows that are not the same to 1e-8, then the counts."""
    lines = [f"{'problem':38} {'quantity':30} {'kind':14} {'before':>22} {'after':>22}  difference"]
    for one in found:
        largest = max(np.abs(one.z), default=0.0)
        if not (every or one.failed or one.said or one.relative > 1e-8 or largest > 0):
            continue
        how = f"|z| {largest:.2f}" if one.z else f"relative {one.relative:.2g}"
        mark = "FAILED " if one.failed else ""
        lines.append(
            f"{one.problem:38} {one.quantity:30} {one.kind:14} {_short(one.before):>22} {_short(one.after):>22}  "
            f"{mark}{'' if isinstance(one.before, str) else how} {one.said}".rstrip()
        )
    kinds = {}
    for one in found:
        total, failed = kinds.get(one.kind, (0, 0))
        kinds[one.kind] = (total + 1, failed + one.failed)
    lines += [f"{kind}: {total} rows, {failed} failed" for kind, (total, failed) in kinds.items()]
    above, entries = shares(found)
    count, allowed, problems = beyond(found)
    lines.append(
        f"estimates: {entries} entries, |z| above 1, 2, 3: "
        + ", ".join(f"{100 * share:.1f} %" for share in above.values())
        + f"; {count} of {problems} problems beyond {EACH:g} (at most {allowed})"
    )
    return "\n".join(lines)


def _short(value):
    if isinstance(value, list):
        flat = np.asarray(value, dtype=float).ravel()
        return f"{flat[0]:.6g} ... ({len(flat)})" if len(flat) else "()"
    return value if isinstance(value, str) else "" if value is None else f"{value:.12g}"
