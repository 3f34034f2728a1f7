"""The dashboards of merchants and operators: pages that only show what the API answers to whoever is signed in.

They are built from ``web/dashboard`` into ``built``, which is never committed: ``make dashboard``.
"""

from .routes import controllers

__all__ = ["controllers"]
