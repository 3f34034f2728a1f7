// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

interface IAggregationExecutor {
    function execute(address msgSender) external payable returns (uint256);
}

/// What 1inch's AggregationRouterV6 does in `swap`, with its ABI, its order and its errors, and nothing else of it.
/// Flags are refused: partial fills, extra coin and Permit2 are not here.
contract Router {
    error ZeroMinReturn();
    error InvalidMsgValue();
    error ReturnAmountIsNotEnough(uint256 result, uint256 minReturn);
    error SafeTransferFailed();
    error SafeTransferFromFailed();
    error ETHTransferFailed();
    error InsufficientBalance();
    error EthDepositRejected();
    error FlagsNotSupported();

    struct SwapDescription {
        address srcToken;
        address dstToken;
        address payable srcReceiver;
        address payable dstReceiver;
        uint256 amount;
        uint256 minReturnAmount;
        uint256 flags;
    }

    address private constant COIN = 0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE;
    uint256 private constant COIN_TRANSFER_GAS = 5000;

    receive() external payable {
        if (msg.sender == tx.origin) revert EthDepositRejected();
    }

    function swap(IAggregationExecutor executor, SwapDescription calldata desc, bytes calldata data)
        external
        payable
        returns (uint256 returnAmount, uint256 spentAmount)
    {
        if (desc.minReturnAmount == 0) revert ZeroMinReturn();
        if (desc.flags != 0) revert FlagsNotSupported();
        bool sellsCoin = _isCoin(desc.srcToken);
        if (msg.value != (sellsCoin ? desc.amount : 0)) revert InvalidMsgValue();
        if (!sellsCoin) {
            bytes memory pull = abi.encodeWithSelector(0x23b872dd, msg.sender, desc.srcReceiver, desc.amount);
            if (!_called(desc.srcToken, pull)) revert SafeTransferFromFailed();
        }
        returnAmount = _execute(executor, desc.amount, data);
        spentAmount = desc.amount;
        if (returnAmount < desc.minReturnAmount) revert ReturnAmountIsNotEnough(returnAmount, desc.minReturnAmount);
        _pay(desc.dstToken, desc.dstReceiver == address(0) ? msg.sender : desc.dstReceiver, returnAmount);
    }

    /// The data stands between the arguments, not encoded, as executors of 1inch expect it.
    function _execute(IAggregationExecutor executor, uint256 amount, bytes calldata data) private returns (uint256) {
        bytes memory call = abi.encodePacked(abi.encodeCall(executor.execute, (msg.sender)), data, amount);
        (bool success, bytes memory result) = address(executor).call{value: msg.value}(call);
        if (!success) {
            assembly {
                revert(add(result, 0x20), mload(result))
            }
        }
        return abi.decode(result, (uint256));
    }

    function _pay(address token, address to, uint256 amount) private {
        if (_isCoin(token)) {
            if (address(this).balance < amount) revert InsufficientBalance();
            (bool success,) = to.call{value: amount, gas: COIN_TRANSFER_GAS}("");
            if (!success) revert ETHTransferFailed();
        } else if (!_called(token, abi.encodeWithSelector(0xa9059cbb, to, amount))) {
            revert SafeTransferFailed();
        }
    }

    function _called(address token, bytes memory data) private returns (bool) {
        (bool success, bytes memory result) = token.call(data);
        return success && (result.length == 0 ? token.code.length > 0 : abi.decode(result, (bool)));
    }

    function _isCoin(address token) private pure returns (bool) {
        return token == address(0) || token == COIN;
    }
}
