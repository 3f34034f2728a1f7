// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

import {Bequest} from "./Splitter.sol";

/// Moves value in every way there is within one transaction, and in some in which it does not move.
contract Mover {
    receive() external payable {}

    function move(address payable to, address payable picky) external payable {
        ecrecover(0, 27, 0, 0); // a precompiled contract: not all nodes count the call
        _send(to, 1);
        _send(address(4), 2); // a precompiled contract, too, and value stays with it
        _send(address(this), 3); // to itself
        _send(picky, 4); // refused
        _send(to, type(uint256).max); // fails before it begins
        new Courier{value: 5}();
        try new Refusing{value: 6}() {} catch {}
        new Bequest{value: 7}(to);
        new Bequest{value: 0}(to); // leaves nothing
        Heir heir = new Heir{value: 8}();
        heir.giveTwice(to, 1);
        heir.end(payable(address(heir))); // to itself
        try this.moveAndRevert(to, 9) {} catch {}
        try this.bequeathAndRevert(to, 9) {} catch {}
        Courier courier = new Courier();
        _repeat(courier, to);
        this.give{value: 10}(to, 10);
        _send(to, 11);
        selfdestruct(to);
    }

    function give(address payable to, uint256 value) external payable {
        _send(to, value);
    }

    function moveAndRevert(address payable to, uint256 value) external {
        _send(to, value);
        new Courier{value: value}();
        revert("asked to fail");
    }

    function bequeathAndRevert(address payable to, uint256 value) external {
        new Bequest{value: value}(to);
        revert("asked to fail");
    }

    /// The value of this transaction is told again by DELEGATECALL, and a value that stays here by CALLCODE.
    function _repeat(Courier courier, address payable to) internal {
        bytes memory data = abi.encodeCall(Courier.carry, (to, 12));
        (bool ok, ) = address(courier).delegatecall(data);
        require(ok, "not carried");
        assembly {
            ok := callcode(gas(), courier, 13, add(data, 32), mload(data), 0, 0)
        }
        require(ok, "not carried again");
    }

    function _send(address to, uint256 value) internal {
        (bool ok, ) = to.call{value: value}("");
        ok;
    }
}

/// Pays from whoever lends it a body.
contract Courier {
    constructor() payable {}

    function carry(address payable to, uint256 value) external payable {
        (bool ok, ) = to.call{value: value}("");
        require(ok, "payment failed");
    }
}

/// Calls others before it ends.
contract Heir {
    constructor() payable {}

    function giveTwice(address payable to, uint256 value) external {
        to.call{value: value}("");
        to.call{value: value}("");
    }

    function end(address payable to) external {
        to.call{value: 1}("");
        selfdestruct(to);
    }
}

/// Cannot be created.
contract Refusing {
    constructor() payable {
        revert("refused");
    }
}
