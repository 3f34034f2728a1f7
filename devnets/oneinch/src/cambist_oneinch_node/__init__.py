"""A 1inch of one's own, for development and tests: the Swap API over a real Uniswap V2. Needs anvil."""

from .amm import Pool
from .calls import NATIVE
from .faults import STRANGER, Fault, Faults
from .local import LocalOneInch
from .uniswap import UniswapMissingError

__all__ = ["NATIVE", "STRANGER", "Fault", "Faults", "LocalOneInch", "Pool", "UniswapMissingError"]
