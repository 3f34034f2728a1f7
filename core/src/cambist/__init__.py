"""Cambist: a self-hosted, plugin-based crypto payment gateway."""

__version__ = "0.1.0"
