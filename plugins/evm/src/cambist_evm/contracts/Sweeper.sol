// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// Empties deposit addresses in one transaction that somebody else pays for (EIP-7702).
///
/// A deposit address delegates to the *agent* of this contract: an EIP-1167 clone of it, which is there only while
/// collect() runs. Before and after, the agent has no code, so a delegating address runs none either, and takes a plain
/// transfer of 21,000 gas as every other address does. While it is there, the address obeys the sponsor, who must come
/// through this contract. Nobody else can make it do anything. There is no storage, nothing to initialize or to upgrade
/// and no signature to replay: whoever submits an address's authorization, when and how often, gains nothing by it.
contract Sweeper {
    struct Item {
        address source;
        address token; // zero is the native coin
        address to;
        uint256 amount;
    }

    error NotAllowed();
    error NoAgent();
    error Failed(address token, address to, uint256 amount);

    /// The only account that may collect.
    address public immutable SPONSOR;

    /// This contract, also where its code runs for the agent or for an address that delegates to it.
    address private immutable SELF;

    constructor(address sponsor) {
        SPONSOR = sponsor;
        SELF = address(this);
    }

    /// What receives during a sweep, from a token that sends native coin along, goes on receiving.
    receive() external payable {}

    /// Moves every item or none. A source without code, or whose code answers nothing, makes the call revert.
    function collect(Item[] calldata items) external {
        if (msg.sender != SPONSOR) revert NotAllowed();
        address payable agent = open();
        for (uint256 i = 0; i < items.length; ++i) {
            Item calldata item = items[i];
            // Decoding the answer is what finds a source that delegates to nothing: it would succeed, and move nothing.
            if (!Sweeper(payable(item.source)).push(item.token, item.to, item.amount)) revert NotAllowed();
        }
        Sweeper(agent).close();
    }

    /// Sends from the address for which it runs. Only this contract, called by the sponsor, is listened to.
    function push(address token, address to, uint256 amount) external returns (bool done) {
        if (msg.sender != SELF) revert NotAllowed();
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

    /// Takes the agent away again at the end of the transaction that brought it (EIP-6780).
    function close() external {
        if (msg.sender != SELF) revert NotAllowed();
        selfdestruct(payable(SPONSOR));
    }

    /// Brings the agent into being, always at the same address, and with no code but that of EIP-1167.
    function open() private returns (address payable agent) {
        bytes memory code = abi.encodePacked(
            hex"3d602d80600a3d3981f3363d3d373d3d3d363d73", SELF, hex"5af43d82803e903d91602b57fd5bf3"
        );
        assembly {
            agent := create2(0, add(code, 32), mload(code), 0)
        }
        if (agent == address(0)) revert NoAgent();
    }
}
