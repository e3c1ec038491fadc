"""Gaussian rectangle probabilities, their gradients, and normal distributions truncated to rectangles."""

from gpcmc.rectangle.draws import AcceptanceError
from gpcmc.rectangle.estimate import RectangleEstimate
from gpcmc.rectangle.field import FieldCovariance
from gpcmc.rectangle.gradient import RectangleGradient
from gpcmc.rectangle.many import RectangleEstimates
from gpcmc.rectangle.probability import rectangle_probability
from gpcmc.rectangle.truncated import TruncatedMoment, TruncatedNormal

__all__ = [
    "AcceptanceError",
    "FieldCovariance",
    "RectangleEstimate",
    "RectangleEstimates",
    "RectangleGradient",
    "TruncatedMoment",
    "TruncatedNormal",
    "rectangle_probability",
]
