"""What the network asks for energy, bandwidth and new accounts, and what the operator allows."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cambist.plugin import ChainUnavailableError, Fee

from .config import ChainSetup
from .endpoint import Endpoint
from .replies import Parameters

PRICES_TTL_S: Final = 10.0

_WHOLE: Final = 10_000  # the network counts its factors in ten-thousandths
_STATE_MARGIN: Final = 20  # a twentieth


class Prices(Struct, frozen=True, kw_only=True):
    """The network's prices in sun.

    ``activation`` is what a transfer of TRX to an address that the network does not know costs, in place of its
    bandwidth; of that, ``activation_bandwidth`` is not asked from a sender with enough staked bandwidth, which is
    ``activation_rate`` per byte. A contract that many use costs more energy by a factor, which grows at most by
    ``factor_growth`` from one period of six hours to the next, and to ``factor_max``. ``free_bandwidth`` is what
    every account has for nothing each day.
    """

    energy: int
    bandwidth: int
    activation: int
    activation_bandwidth: int
    activation_rate: int
    factor_max: int
    factor_growth: int
    free_bandwidth: int

    def limit_for(self, used: int, penalty: int) -> int:
        """Return how much energy to allow for a call that used so much, of which ``penalty`` is by the factor."""
        base = used - penalty
        grown = min(used * (_WHOLE + self.factor_growth), base * (_WHOLE + self.factor_max)) // _WHOLE
        return max(used, grown) + used // _STATE_MARGIN + 1


def dear_energy(prices: Prices, setup: ChainSetup) -> str | None:
    """Say that energy costs more than the operator allows, so that no token is sent; None where it does not."""
    if prices.energy <= setup.config.energy_price_max_sun:
        return None
    allowed = f"energy_price_max_sun is {setup.config.energy_price_max_sun}"
    return f"{setup.info.id} asks for {prices.energy} sun per energy, and {allowed}"


def above_ceiling(fee: Fee, setup: ChainSetup) -> str | None:
    """Say that one transaction costs more than the operator allows; None where it does not."""
    if fee.cost_max <= setup.fee_ceiling:
        return None
    allowed = f"fee_ceiling_trx allows {setup.fee_ceiling}"
    return f"a transaction on {setup.info.id} may cost {fee.cost_max} sun, and {allowed}"


async def read_prices(endpoint: Endpoint) -> Prices:
    """Ask a node for the prices that hold now."""
    answer = await endpoint.post("wallet/getchainparameters", {}, Parameters)
    values = {one.key: one.value for one in answer.parameters}
    energy, bandwidth = values.get("getEnergyFee", 0), values.get("getTransactionFee", 0)
    if energy <= 0 or bandwidth <= 0:
        raise ChainUnavailableError(f"{endpoint.name} does not tell what energy and bandwidth cost")
    account = values.get("getCreateAccountFee", 0)
    dynamic = values.get("getAllowDynamicEnergy", 0) > 0
    return Prices(
        energy=energy,
        bandwidth=bandwidth,
        activation=values.get("getCreateNewAccountFeeInSystemContract", 0) + account,
        activation_bandwidth=account,
        activation_rate=max(values.get("getCreateNewAccountBandwidthRate", 0), 1),
        factor_max=values.get("getDynamicEnergyMaxFactor", 0) if dynamic else 0,
        factor_growth=values.get("getDynamicEnergyIncreaseFactor", 0) if dynamic else 0,
        free_bandwidth=values.get("getFreeNetLimit", 0),
    )
