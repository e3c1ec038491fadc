"""Gaussian rectangle probabilities, their gradients, and normal distributions truncated to rectangles."""

from gpcmc.rectangle.draws import AcceptanceError
from gpcmc.rectangle.estimate import RectangleEstimate, rectangle_probability
from gpcmc.rectangle.gradient import RectangleGradient
from gpcmc.rectangle.truncated import TruncatedMoment, TruncatedNormal

__all__ = [
    "AcceptanceError",
    "RectangleEstimate",
    "RectangleGradient",
    "TruncatedMoment",
    "TruncatedNormal",
    "rectangle_probability",
]
