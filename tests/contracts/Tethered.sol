// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A token whose transfer looks at as much as that of USDT on Ethereum, so that it costs about as much: a switch, a
/// list of refused senders, a successor, and a fee that is zero. It answers nothing.
contract Tethered {
    event Transfer(address indexed from, address indexed to, uint256 value);

    string public constant symbol = "USDT";
    uint8 public constant decimals = 6;
    address private owner = msg.sender;
    bool private stopped;
    mapping(address => bool) private refused;
    address private successor;
    uint256 private rate;
    uint256 private rateMax;
    mapping(address => uint256) public balanceOf;

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external {
        require(!stopped && !refused[msg.sender] && successor == address(0));
        uint256 fee = (value * rate) / 10000;
        if (fee > rateMax) fee = rateMax;
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value - fee;
        if (fee > 0) balanceOf[owner] += fee;
        emit Transfer(msg.sender, to, value);
    }
}
