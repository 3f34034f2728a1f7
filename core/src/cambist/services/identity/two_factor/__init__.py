"""The second factor of merchants in person: enrolling, taking codes, and the way back in."""

from .codes import Enrolment
from .service import Status, TwoFactor, reset

__all__ = ["Enrolment", "Status", "TwoFactor", "reset"]
