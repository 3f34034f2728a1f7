"""The merchants' dashboard: a page that only shows what the API answers to whoever is signed in.

It is built from ``web/dashboard`` into ``built``, which is never committed: ``make dashboard``.
"""

from .routes import controllers

__all__ = ["controllers"]
