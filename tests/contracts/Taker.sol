// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

interface Taken20 {
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

/// Takes tokens from whoever calls it and has allowed that, as routers and bridges do; and refuses whoever asks for it.
contract Taker {
    event Taken(address indexed from, uint256 indexed amount, address token);
    event Paid(address indexed from, uint256 amount);

    function take(address token, uint256 amount) external {
        require(Taken20(token).transferFrom(msg.sender, address(this), amount), "not taken");
        emit Taken(msg.sender, amount, token);
    }

    function pay() external payable {
        emit Paid(msg.sender, msg.value);
    }

    function refuse(string calldata reason) external payable {
        emit Paid(msg.sender, msg.value);
        revert(reason);
    }

    /// Burns so much gas that no limit for a call suffices.
    function exhaust() external pure {
        while (true) {}
    }

    /// Leaves so many logs of its own.
    function repeat(uint256 times) external {
        for (uint256 i = 0; i < times; i++) {
            emit Paid(msg.sender, i);
        }
    }
}
