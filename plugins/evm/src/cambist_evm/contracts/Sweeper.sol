// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// Empties deposit addresses in one transaction that somebody else pays for (EIP-7702).
///
/// A deposit address that delegates to this contract stays its key's, and obeys one more: the sponsor, who must come
/// through the contract itself. Nobody else can make it do anything. There is no storage, nothing to initialize or to
/// upgrade, no delegatecall and no signature to replay: whoever submits an address's authorization, when and how often,
/// gains nothing by it.
contract Sweeper {
    struct Item {
        address source;
        address token; // zero is the native coin
        address to;
        uint256 amount;
    }

    error NotAllowed();
    error Failed(address token, address to, uint256 amount);

    /// The only account that may collect.
    address public immutable SPONSOR;

    /// This contract, also where its code runs for an address that delegates to it.
    address private immutable SELF;

    constructor(address sponsor) {
        SPONSOR = sponsor;
        SELF = address(this);
    }

    /// Delegating addresses go on receiving the native coin, from contracts that lend 2300 gas as well.
    receive() external payable {}

    /// Moves every item or none. A source that does not delegate to this contract has no code, so the call reverts.
    function collect(Item[] calldata items) external {
        if (msg.sender != SPONSOR) revert NotAllowed();
        for (uint256 i = 0; i < items.length; ++i) {
            Item calldata item = items[i];
            Sweeper(payable(item.source)).push(item.token, item.to, item.amount);
        }
    }

    /// Sends from the address for which it runs. Only this contract, called by the sponsor, is listened to.
    function push(address token, address to, uint256 amount) external {
        if (msg.sender != SELF) revert NotAllowed();
        bool done;
        if (token == address(0)) {
            (done, ) = to.call{value: amount}("");
        } else {
            bytes memory answer;
            // transfer(address,uint256). Some tokens answer nothing, as USDT on Ethereum; they revert where they refuse.
            (done, answer) = token.call(abi.encodeWithSelector(0xa9059cbb, to, amount));
            done = done && (answer.length == 0 ? token.code.length > 0 : abi.decode(answer, (bool)));
        }
        if (!done) revert Failed(token, to, amount);
    }
}
