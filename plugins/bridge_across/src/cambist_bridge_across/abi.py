"""The part of the SpokePool's interface that is used, as its ABI says it, and what stands for it on the chain."""

from __future__ import annotations

from typing import Any, Final

DEPOSIT_SELECTOR: Final = bytes.fromhex("7b939232")
DEPOSITED_TOPIC: Final = bytes.fromhex("32ed1a409ef04c7b0227189c3a103dc5ac10e775a15b785dcc510201f7c25ad3")
FILLED_TOPIC: Final = bytes.fromhex("44b559f101f8fbcc8a0ea43fa91a05a729a5ea6e14a7c75aa750374690137208")
REFUNDED_TOPIC: Final = bytes.fromhex("f4ad92585b1bc117fbdd644990adf0827bc4c95baeae8a23322af807b6d0020e")
CLAIMED_TOPIC: Final = bytes.fromhex("6c172ea51018fb2eb2118f3f8a507c4df71eb519b8c0052834dc3c920182fef4")
TRANSFER_TOPIC: Final = bytes.fromhex("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
"""Of a token, and not of the SpokePool: who gives and who gets are indexed, how much is the only word."""


def _inputs(*declared: str) -> list[dict[str, Any]]:
    """Return parameters of an event or a function, each declared as ``type [indexed] name``."""
    parameters = []
    for one in declared:
        kind, *indexed, name = one.split()
        parameters.append({"type": kind, "name": name, "indexed": bool(indexed)})
    return parameters


DEPOSIT: Final[dict[str, Any]] = {
    "type": "function",
    "name": "depositV3",
    "stateMutability": "payable",
    "inputs": _inputs(
        "address depositor",
        "address recipient",
        "address inputToken",
        "address outputToken",
        "uint256 inputAmount",
        "uint256 outputAmount",
        "uint256 destinationChainId",
        "address exclusiveRelayer",
        "uint32 quoteTimestamp",
        "uint32 fillDeadline",
        "uint32 exclusivityParameter",
        "bytes message",
    ),
    "outputs": [],
}

DEPOSITED: Final[dict[str, Any]] = {
    "type": "event",
    "name": "FundsDeposited",
    "anonymous": False,
    "inputs": _inputs(
        "bytes32 inputToken",
        "bytes32 outputToken",
        "uint256 inputAmount",
        "uint256 outputAmount",
        "uint256 indexed destinationChainId",
        "uint256 indexed depositId",
        "uint32 quoteTimestamp",
        "uint32 fillDeadline",
        "uint32 exclusivityDeadline",
        "bytes32 indexed depositor",
        "bytes32 recipient",
        "bytes32 exclusiveRelayer",
        "bytes message",
    ),
}

FILLED: Final[dict[str, Any]] = {
    "type": "event",
    "name": "FilledRelay",
    "anonymous": False,
    "inputs": [
        *_inputs(
            "bytes32 inputToken",
            "bytes32 outputToken",
            "uint256 inputAmount",
            "uint256 outputAmount",
            "uint256 repaymentChainId",
            "uint256 indexed originChainId",
            "uint256 indexed depositId",
            "uint32 fillDeadline",
            "uint32 exclusivityDeadline",
            "bytes32 exclusiveRelayer",
            "bytes32 indexed relayer",
            "bytes32 depositor",
            "bytes32 recipient",
            "bytes32 messageHash",
        ),
        {
            "type": "tuple",
            "name": "relayExecutionInfo",
            "indexed": False,
            "components": _inputs(
                "bytes32 updatedRecipient",
                "bytes32 updatedMessageHash",
                "uint256 updatedOutputAmount",
                "uint8 fillType",
            ),
        },
    ],
}

REFUNDED: Final[dict[str, Any]] = {
    "type": "event",
    "name": "ExecutedRelayerRefundRoot",
    "anonymous": False,
    "inputs": _inputs(
        "uint256 amountToReturn",
        "uint256 indexed chainId",
        "uint256[] refundAmounts",
        "uint32 indexed rootBundleId",
        "uint32 indexed leafId",
        "address l2TokenAddress",
        "address[] refundAddresses",
        "bool deferredRefunds",
        "address caller",
    ),
}

CLAIMED: Final[dict[str, Any]] = {
    "type": "event",
    "name": "ClaimedRelayerRefund",
    "anonymous": False,
    "inputs": _inputs(
        "bytes32 indexed l2TokenAddress",
        "bytes32 indexed refundAddress",
        "uint256 amount",
        "address indexed caller",
    ),
}
