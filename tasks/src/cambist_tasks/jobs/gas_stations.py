"""Gas stations: what they hold, and an alert before one runs dry."""

from __future__ import annotations

from cambist.bootstrap import Gateway
from cambist.services.sending.gas import gas_stations
from cambist.services.sending.gas.gas_stations import LowMarks


async def check_gas_stations(gateway: Gateway) -> bool:
    """Ask every live chain what the gas station holds, and store it."""
    marks = LowMarks(balances=gateway.settings.gas.low_balance, stakes=gateway.settings.gas.low_stake)
    await gas_stations.check_all(gateway.db, gateway.chains, marks, gateway.clock.now())
    return False
