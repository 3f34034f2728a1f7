"""The messages of TRON's protocol that the local network reads and writes: name, field numbers and types.

A line is ``number name type``; types in capitals are enums, other names are messages, ``*`` means repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ENUMS: Final[Mapping[str, Mapping[str, int]]] = {
    "CONTRACT_TYPE": {
        "AccountCreateContract": 0,
        "TransferContract": 1,
        "TransferAssetContract": 2,
        "CreateSmartContract": 30,
        "TriggerSmartContract": 31,
        "AccountPermissionUpdateContract": 46,
        "FreezeBalanceV2Contract": 54,
        "UnfreezeBalanceV2Contract": 55,
        "WithdrawExpireUnfreezeContract": 56,
        "DelegateResourceContract": 57,
        "UnDelegateResourceContract": 58,
    },
    "CONTRACT_RESULT": {
        "DEFAULT": 0,
        "SUCCESS": 1,
        "REVERT": 2,
        "BAD_JUMP_DESTINATION": 3,
        "OUT_OF_MEMORY": 4,
        "PRECOMPILED_CONTRACT": 5,
        "STACK_TOO_SMALL": 6,
        "STACK_TOO_LARGE": 7,
        "ILLEGAL_OPERATION": 8,
        "STACK_OVERFLOW": 9,
        "OUT_OF_ENERGY": 10,
        "OUT_OF_TIME": 11,
        "JVM_STACK_OVER_FLOW": 12,
        "UNKNOWN": 13,
        "TRANSFER_FAILED": 14,
        "INVALID_CODE": 15,
    },
    "CODE": {"SUCESS": 0, "FAILED": 1},
    "RESOURCE_CODE": {"BANDWIDTH": 0, "ENERGY": 1, "TRON_POWER": 2},
    "ACCOUNT_TYPE": {"Normal": 0, "AssetIssue": 1, "Contract": 2},
    "PERMISSION_TYPE": {"Owner": 0, "Witness": 1, "Active": 2},
    "RESPONSE_CODE": {
        "SUCCESS": 0,
        "SIGERROR": 1,
        "CONTRACT_VALIDATE_ERROR": 2,
        "CONTRACT_EXE_ERROR": 3,
        "BANDWITH_ERROR": 4,
        "DUP_TRANSACTION_ERROR": 5,
        "TAPOS_ERROR": 6,
        "TOO_BIG_TRANSACTION_ERROR": 7,
        "TRANSACTION_EXPIRATION_ERROR": 8,
        "SERVER_BUSY": 9,
        "NO_CONNECTION": 10,
        "NOT_ENOUGH_EFFECTIVE_CONNECTION": 11,
        "BLOCK_UNSOLIDIFIED": 12,
        "OTHER_ERROR": 20,
    },
    "SIGN_WEIGHT_CODE": {
        "ENOUGH_PERMISSION": 0,
        "NOT_ENOUGH_PERMISSION": 1,
        "SIGNATURE_FORMAT_ERROR": 2,
        "COMPUTE_ADDRESS_ERROR": 3,
        "PERMISSION_ERROR": 4,
        "OTHER_ERROR": 20,
    },
    "APPROVED_CODE": {"SUCCESS": 0, "SIGNATURE_FORMAT_ERROR": 1, "COMPUTE_ADDRESS_ERROR": 2, "OTHER_ERROR": 20},
    "ENTRY_TYPE": {
        "UnknownEntryType": 0,
        "Constructor": 1,
        "Function": 2,
        "Event": 3,
        "Fallback": 4,
        "Receive": 5,
        "Error": 6,
    },
    "MUTABILITY": {"UnknownMutabilityType": 0, "Pure": 1, "View": 2, "Nonpayable": 3, "Payable": 4},
}
"""Value names by enum."""

# A name stands in one enum alone in one package, so a descriptor has it behind its enum's; JSON never shows that.

MESSAGES: Final[Mapping[str, str]] = {
    # --- Transactions ---
    "Any": "1 type_url string, 2 value bytes",
    "Contract": "1 type CONTRACT_TYPE, 2 parameter Any, 3 provider bytes, 4 ContractName bytes, 5 Permission_id int32",
    "Raw": "1 ref_block_bytes bytes, 3 ref_block_num int64, 4 ref_block_hash bytes, 8 expiration int64, 10 data bytes, "
    "11 contract *Contract, 12 scripts bytes, 14 timestamp int64, 18 fee_limit int64",
    "Result": "1 fee int64, 2 ret CODE, 3 contractRet CONTRACT_RESULT, 27 withdraw_expire_amount int64",
    "Transaction": "1 raw_data Raw, 2 signature *bytes, 5 ret *Result",
    # --- What a transaction may hold ---
    "AccountCreateContract": "1 owner_address bytes, 2 account_address bytes, 3 type ACCOUNT_TYPE",
    "TransferContract": "1 owner_address bytes, 2 to_address bytes, 3 amount int64",
    "TransferAssetContract": "1 asset_name bytes, 2 owner_address bytes, 3 to_address bytes, 4 amount int64",
    "CreateSmartContract": "1 owner_address bytes, 2 new_contract SmartContract, 3 call_token_value int64, "
    "4 token_id int64",
    "TriggerSmartContract": "1 owner_address bytes, 2 contract_address bytes, 3 call_value int64, 4 data bytes, "
    "5 call_token_value int64, 6 token_id int64",
    "FreezeBalanceV2Contract": "1 owner_address bytes, 2 frozen_balance int64, 3 resource RESOURCE_CODE",
    "UnfreezeBalanceV2Contract": "1 owner_address bytes, 2 unfreeze_balance int64, 3 resource RESOURCE_CODE",
    "WithdrawExpireUnfreezeContract": "1 owner_address bytes",
    "DelegateResourceContract": "1 owner_address bytes, 2 resource RESOURCE_CODE, 3 balance int64, "
    "4 receiver_address bytes, 5 lock bool, 6 lock_period int64",
    "UnDelegateResourceContract": "1 owner_address bytes, 2 resource RESOURCE_CODE, 3 balance int64, "
    "4 receiver_address bytes",
    "AccountPermissionUpdateContract": "1 owner_address bytes, 2 owner Permission, 3 witness Permission, "
    "4 actives *Permission",
    # --- Blocks, and what came of transactions ---
    "HeaderRaw": "1 timestamp int64, 2 txTrieRoot bytes, 3 parentHash bytes, 7 number int64, 8 witness_id int64, "
    "9 witness_address bytes, 10 version int32, 11 accountStateRoot bytes",
    "BlockHeader": "1 raw_data HeaderRaw, 2 witness_signature bytes",
    "Log": "1 address bytes, 2 topics *bytes, 3 data bytes",
    "CallValueInfo": "1 callValue int64, 2 tokenId string",
    "InternalTransaction": "1 hash bytes, 2 caller_address bytes, 3 transferTo_address bytes, "
    "4 callValueInfo *CallValueInfo, 5 note bytes, 6 rejected bool, 7 extra string",
    "ResourceReceipt": "1 energy_usage int64, 2 energy_fee int64, 3 origin_energy_usage int64, "
    "4 energy_usage_total int64, 5 net_usage int64, 6 net_fee int64, 7 result CONTRACT_RESULT, "
    "8 energy_penalty_total int64",
    "TransactionInfo": "1 id bytes, 2 fee int64, 3 blockNumber int64, 4 blockTimeStamp int64, 5 contractResult *bytes, "
    "6 contract_address bytes, 7 receipt ResourceReceipt, 8 log *Log, 9 result CODE, 10 resMessage bytes, "
    "17 internal_transactions *InternalTransaction, 28 withdraw_expire_amount int64",
    # --- Accounts ---
    "Key": "1 address bytes, 2 weight int64",
    "Permission": "1 type PERMISSION_TYPE, 2 id int32, 3 permission_name string, 4 threshold int64, 5 parent_id int32, "
    "6 operations bytes, 7 keys *Key",
    "Entry64": "1 key string, 2 value int64",
    "Frozen": "1 type RESOURCE_CODE, 2 amount int64",
    "Unfrozen": "1 type RESOURCE_CODE, 3 unfreeze_amount int64, 4 unfreeze_expire_time int64",
    "AccountResource": "1 energy_usage int64, 3 latest_consume_time_for_energy int64, 9 energy_window_size int64, "
    "10 delegated_frozenV2_balance_for_energy int64, 11 acquired_delegated_frozenV2_balance_for_energy int64, "
    "12 energy_window_optimized bool",
    "Account": "2 type ACCOUNT_TYPE, 3 address bytes, 4 balance int64, 56 assetV2 *Entry64, 8 net_usage int64, "
    "9 create_time int64, 10 latest_opration_time int64, 14 is_witness bool, 19 free_net_usage int64, "
    "21 latest_consume_time int64, 22 latest_consume_free_time int64, 24 net_window_size int64, "
    "25 net_window_optimized bool, 26 account_resource AccountResource, 31 owner_permission Permission, "
    "32 witness_permission Permission, 33 active_permission *Permission, 34 frozenV2 *Frozen, 35 unfrozenV2 *Unfrozen, "
    "36 delegated_frozenV2_balance_for_bandwidth int64, 37 acquired_delegated_frozenV2_balance_for_bandwidth int64",
    "AccountResourceMessage": "1 freeNetUsed int64, 2 freeNetLimit int64, 3 NetUsed int64, 4 NetLimit int64, "
    "5 assetNetUsed *Entry64, 6 assetNetLimit *Entry64, 7 TotalNetLimit int64, 8 TotalNetWeight int64, "
    "10 tronPowerUsed int64, 11 tronPowerLimit int64, 13 EnergyUsed int64, 14 EnergyLimit int64, "
    "15 TotalEnergyLimit int64, 16 TotalEnergyWeight int64",
    "DelegatedResource": "1 from bytes, 2 to bytes, 3 frozen_balance_for_bandwidth int64, "
    "4 frozen_balance_for_energy int64, 5 expire_time_for_bandwidth int64, 6 expire_time_for_energy int64",
    "DelegatedResourceList": "1 delegatedResource *DelegatedResource",
    "DelegatedResourceAccountIndex": "1 account bytes, 2 fromAccounts *bytes, 3 toAccounts *bytes, 4 timestamp int64",
    # --- Contracts ---
    "Param": "1 indexed bool, 2 name string, 3 type string",
    "AbiEntry": "1 anonymous bool, 2 constant bool, 3 name string, 4 inputs *Param, 5 outputs *Param, "
    "6 type ENTRY_TYPE, 7 payable bool, 8 stateMutability MUTABILITY",
    "ABI": "1 entrys *AbiEntry",
    "SmartContract": "1 origin_address bytes, 2 contract_address bytes, 3 abi ABI, 4 bytecode bytes, "
    "5 call_value int64, 6 consume_user_resource_percent int64, 7 name string, 8 origin_energy_limit int64, "
    "9 code_hash bytes, 10 trx_hash bytes, 11 version int32",
    "ContractState": "1 energy_usage int64, 2 energy_factor int64, 3 update_cycle int64",
    "SmartContractDataWrapper": "1 smart_contract SmartContract, 2 runtimecode bytes, 3 contract_state ContractState",
    # --- Answers ---
    "Return": "1 result bool, 2 code RESPONSE_CODE, 3 message bytes",
    "TransactionExtention": "1 transaction Transaction, 2 txid bytes, 3 constant_result *bytes, 4 result Return, "
    "5 energy_used int64, 6 logs *Log, 7 internal_transactions *InternalTransaction, 8 energy_penalty int64",
    "EstimateEnergyMessage": "1 result Return, 2 energy_required int64",
    "SignWeightResult": "1 code SIGN_WEIGHT_CODE, 2 message string",
    "TransactionSignWeight": "1 permission Permission, 2 approved_list *bytes, 3 current_weight int64, "
    "4 result SignWeightResult, 5 transaction TransactionExtention",
    "ApprovedResult": "1 code APPROVED_CODE, 2 message string",
    "TransactionApprovedList": "2 approved_list *bytes, 4 result ApprovedResult, 5 transaction TransactionExtention",
}
"""Fields by message."""
