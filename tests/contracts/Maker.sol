// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Keeps what it is given until it is told to pass it on.
contract Made {
    constructor() payable {}

    receive() external payable {}

    function pass(address payable to) external {
        to.transfer(address(this).balance);
    }
}

/// Makes contracts, and pays them while it makes them.
contract Maker {
    Made public last;

    function make() external payable {
        last = new Made{value: msg.value}();
    }

    function makeAndPass(address payable to) external payable {
        Made made = new Made{value: msg.value}();
        made.pass(to);
        last = made;
    }

    function makeAndFail() external payable {
        new Made{value: msg.value}();
        revert("made for nothing");
    }
}
