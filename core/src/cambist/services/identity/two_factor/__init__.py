"""The second factor of people who sign in: enrolling, taking codes, and the way back in."""

from .codes import Enrolment
from .service import Status, TwoFactor, reset

__all__ = ["Enrolment", "Status", "TwoFactor", "reset"]
