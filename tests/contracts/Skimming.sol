// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A token that keeps a hundredth of every transfer for its owner.
contract Skimming {
    event Transfer(address indexed from, address indexed to, uint256 value);

    address public immutable owner = msg.sender;
    string public constant symbol = "SKIM";
    uint8 public constant decimals = 6;
    mapping(address => uint256) public balanceOf;

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        uint256 fee = value / 100;
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value - fee;
        balanceOf[owner] += fee;
        emit Transfer(msg.sender, to, value - fee);
        emit Transfer(msg.sender, owner, fee);
        return true;
    }
}
