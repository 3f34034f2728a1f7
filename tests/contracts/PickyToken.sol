// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A token whose issuer can refuse an address, as USDC's and USDT's can; and which, told to be quiet, answers false
/// instead of reverting, as some old tokens do.
contract PickyToken {
    event Transfer(address indexed from, address indexed to, uint256 value);

    string public constant symbol = "PICK";
    uint8 public constant decimals = 6;
    bool public quiet;
    mapping(address => uint256) public balanceOf;
    mapping(address => bool) public refused;

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function refuse(address account) external {
        refused[account] = true;
    }

    function setQuiet(bool quiet_) external {
        quiet = quiet_;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        if (quiet && (refused[to] || balanceOf[msg.sender] < value)) {
            return false;
        }
        require(!refused[to], "recipient is refused");
        require(balanceOf[msg.sender] >= value, "balance");
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}

/// Burns whatever gas it is given when it is paid.
contract GasTrap {
    receive() external payable {
        while (true) {}
    }
}
