"""Simulated chains: what a sandbox project's payments are paid on, with real addresses and no node."""

from .service import Sandbox

__all__ = ["Sandbox"]
