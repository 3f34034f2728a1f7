// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Calls itself USDT and emits any Transfer it is told to. Moves nothing.
contract Impostor {
    event Transfer(address indexed from, address indexed to, uint256 value);

    string public constant symbol = "USDT";
    uint8 public constant decimals = 6;

    function forge(address from, address to, uint256 value, uint256 times) external {
        for (uint256 i = 0; i < times; i++) {
            emit Transfer(from, to, value);
        }
    }
}

/// Says false instead of reverting, and moves and logs nothing.
contract Silent {
    string public constant symbol = "SHH";
    uint8 public constant decimals = 6;

    function transfer(address, uint256) external pure returns (bool) {
        return false;
    }
}

/// Emits what looks like a Transfer and is none: three indexed fields (ERC-721), or none.
contract Lookalike {
    event Transfer(address indexed from, address indexed to, uint256 indexed id);

    string public constant symbol = "NFT";
    uint8 public constant decimals = 0;

    function transferId(address to, uint256 id) external {
        emit Transfer(msg.sender, to, id);
    }

    function transferUnindexed(address to, uint256 value) external {
        bytes32 topic = keccak256("Transfer(address,address,uint256)");
        bytes memory data = abi.encode(msg.sender, to, value);
        assembly {
            log1(add(data, 32), mload(data), topic)
        }
    }
}
