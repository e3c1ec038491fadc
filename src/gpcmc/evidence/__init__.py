"""The log marginal likelihood as a function of the kernel's hyperparameters, with its gradient, and its maximum.

`surface` has one surface for all methods and forms of covariance, `exact` what makes it unbiased, `search` the one
search for its maximum. Where a search begins is in `scale`, which form a covariance gets in `forms`.
"""

from gpcmc.evidence.ascent import Optimum, bounded, maximize
from gpcmc.evidence.climbing import Summit, climb
from gpcmc.evidence.exact import CommonPoints, climb_exact, exact_surface
from gpcmc.evidence.forms import DENSE, Form, form_of
from gpcmc.evidence.search import Optimizer, Search
from gpcmc.evidence.surface import Surface, surface_method

__all__ = [
    "DENSE",
    "CommonPoints",
    "Form",
    "Optimizer",
    "Optimum",
    "Search",
    "Summit",
    "Surface",
    "bounded",
    "climb",
    "climb_exact",
    "exact_surface",
    "form_of",
    "maximize",
    "surface_method",
]
