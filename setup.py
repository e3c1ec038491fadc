"""The compiled half of the build; everything else is declared in pyproject.toml."""

import os
import sys
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = "src/gpcmc/orthant"
# NumPy ships its distributions as a static library for extensions such as this one.
NPYRANDOM = Path(np.get_include()).parents[1] / "random" / "lib"
# A wheel holds the library alone. Built in place, the studies have their extensions too.
IN_PLACE = {"--inplace", "editable_wheel"} & set(sys.argv)
PACKAGES = ["gpcmc", "studies"] if IN_PLACE else ["gpcmc"]
# A square root that may set errno is a call, and a loop with a call is not vectorised. No option names a processor:
# a wheel runs on each, and _kernels.h has clones of its loops for wide vectors.
FLAGS, LIBRARIES = ["-O3", "-fno-math-errno"], ["npyrandom", "m"]
if sys.platform == "win32":
    FLAGS, LIBRARIES = ["/O2", "/std:c11"], ["npyrandom"]


def extension(path: Path) -> Extension:
    return Extension(
        ".".join(path.with_suffix("").parts[1:]),
        sources=[str(path)],
        depends=[f"{KERNELS}/_kernels.h"],
        include_dirs=[np.get_include(), KERNELS],
        library_dirs=[str(NPYRANDOM)],
        libraries=LIBRARIES,
        extra_compile_args=FLAGS,
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
    )


# The C file goes to build/, so that building never writes beside the sources.
setup(
    options={"build_ext": {"parallel": os.cpu_count()}},
    ext_modules=cythonize(
        [extension(path) for name in PACKAGES for path in sorted(Path("src", name).rglob("*.pyx"))],
        build_dir="build/cython",
        language_level=3,
    ),
)
