"""The example server of prices: for tests, and for trying the plugin out.

``python -m cambist_florin.testing`` runs it. When the plugin asks a real source, answers that were recorded from it take
the place of these.
"""

from .server import PRICES, ExampleServer

__all__ = ["PRICES", "ExampleServer"]
