"""The example service: for tests, and for trying the plugin out.

``python -m cambist_florin.testing`` runs it. When the plugin asks a real service, answers that were recorded from it take
the place of these.
"""

from .service import CONTRACTS, ExampleService

__all__ = ["CONTRACTS", "ExampleService"]
