"""The compiled half of the build; everything else is declared in pyproject.toml."""

import os
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = "src/gpcmc/orthant"
# NumPy ships its distributions as a static library for extensions such as this one.
NPYRANDOM = Path(np.get_include()).parents[1] / "random" / "lib"


def extension(name: str) -> Extension:
    return Extension(
        name,
        sources=[f"src/{name.replace('.', '/')}.pyx"],
        depends=[f"{KERNELS}/_kernels.h"],
        include_dirs=[np.get_include(), KERNELS],
        library_dirs=[str(NPYRANDOM)],
        libraries=["npyrandom", "m"],
        # a square root that may set errno is a call, and a loop with a call is not vectorised
        extra_compile_args=["-O3", "-fno-math-errno"],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
    )


# The C file goes to build/, so that building never writes beside the sources.
setup(
    options={"build_ext": {"parallel": os.cpu_count()}},
    ext_modules=cythonize(
        [
            extension(f"gpcmc.{name}")
            for name in ("orthant._sampler", "orthant._separation", "gp._likelihood", "neal._gibbs")
        ],
        build_dir="build/cython",
        language_level=3,
    ),
)
