"""What the committee of a TRON network has decided on: prices, limits and periods, with main network's values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

BLOCK_MS: Final = 3_000
DAY_MS: Final = 86_400_000
TRX: Final = 1_000_000

_KEYS: Final = {
    "create_account_fee": "getCreateAccountFee",
    "transaction_fee": "getTransactionFee",
    "new_account_fee": "getCreateNewAccountFeeInSystemContract",
    "new_account_bandwidth_rate": "getCreateNewAccountBandwidthRate",
    "energy_fee": "getEnergyFee",
    "energy_total": "getTotalEnergyCurrentLimit",
    "permission_update_fee": "getUpdateAccountPermissionFee",
    "multi_signature_fee": "getMultiSignFee",
    "fee_limit_max": "getMaxFeeLimit",
    "free_bandwidth": "getFreeNetLimit",
    "bandwidth_total": "getTotalNetLimit",
    "memo_fee": "getMemoFee",
    "unstake_days": "getUnfreezeDelayDays",
    "dynamic_energy": "getAllowDynamicEnergy",
    "dynamic_threshold": "getDynamicEnergyThreshold",
    "dynamic_increase": "getDynamicEnergyIncreaseFactor",
    "dynamic_max": "getDynamicEnergyMaxFactor",
    "lock_blocks_max": "getMaxDelegateLockPeriod",
    "create_account_bytes_max": "getMaxCreateAccountTxSize",
}
_SWITCHED_ON: Final = (
    "getAllowCreationOfContracts", "getAllowUpdateAccountName", "getAllowSameTokenName", "getAllowDelegateResource",
    "getAllowTvmTransferTrc10", "getAllowMultiSign", "getAllowTvmConstantinople", "getAllowTvmSolidity059",
    "getAllowTvmIstanbul", "getForbidTransferToContract", "getChangeDelegation", "getAllowOptimizeBlackHole",
    "getAllowNewResourceModel", "getAllowTvmFreeze", "getAllowTvmVote", "getAllowTvmLondon",
    "getAllowTvmCompatibleEvm", "getAllowNewReward", "getAllowDelegateOptimization", "getAllowTvmShangHai",
    "getAllowCancelAllUnfreezeV2", "getAllowEnergyAdjustment", "getAllowStrictMath", "getConsensusLogicOptimization",
    "getAllowTvmCancun",
)  # fmt: skip


class Parameters(msgspec.Struct, frozen=True):
    """The numbers; amounts in sun. The weights are what everybody else has staked, in TRX.

    ``free_bandwidth_of_all`` is what is left of the free bandwidth that all accounts share, which no node tells.
    """

    energy_fee: int = 100
    transaction_fee: int = 1_000
    create_account_fee: int = 100_000
    new_account_fee: int = 1_000_000
    new_account_bandwidth_rate: int = 1
    permission_update_fee: int = 100_000_000
    multi_signature_fee: int = 1_000_000
    memo_fee: int = 1_000_000
    fee_limit_max: int = 15_000_000_000
    free_bandwidth: int = 600
    free_bandwidth_of_all: int = 14_400_000_000
    bandwidth_total: int = 43_200_000_000
    bandwidth_weight: int = 27_908_390_830
    energy_total: int = 180_000_000_000
    energy_weight: int = 16_307_698_552
    unstake_days: int = 14
    unstakes_max: int = 32
    lock_blocks_max: int = 864_000
    create_account_bytes_max: int = 1_000
    dynamic_energy: int = 1
    dynamic_threshold: int = 5_000_000_000
    dynamic_increase: int = 2_000
    dynamic_max: int = 34_000
    signatures_max: int = 5
    pending_max: int = 2_000
    pending_ms_max: int = 60_000
    block_bytes_max: int = 2_000_000

    def listed(self) -> Iterator[tuple[str, int]]:
        """Yield them under the names that nodes use."""
        for field, key in _KEYS.items():
            yield key, getattr(self, field)
        for key in _SWITCHED_ON:
            yield key, 1
        yield "getMaintenanceTimeInterval", 6 * 3_600_000
        yield "getMaxCpuTimeOfOneTx", 80
        yield "getTotalEnergyLimit", self.energy_total
