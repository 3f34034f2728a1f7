// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

interface IUniswapV2Router02 {
    function swapExactTokensForTokensSupportingFeeOnTransferTokens(
        uint256 amountIn, uint256 amountOutMin, address[] calldata path, address to, uint256 deadline
    ) external;

    function swapExactETHForTokensSupportingFeeOnTransferTokens(
        uint256 amountOutMin, address[] calldata path, address to, uint256 deadline
    ) external payable;

    function swapExactTokensForETHSupportingFeeOnTransferTokens(
        uint256 amountIn, uint256 amountOutMin, address[] calldata path, address to, uint256 deadline
    ) external;
}

interface IBalances {
    function balanceOf(address owner) external view returns (uint256);
}

/// Pays the referrer out of what is sold and swaps the rest over Uniswap V2; what comes out goes to who called.
contract Executor {
    IUniswapV2Router02 private immutable uniswap;

    struct Plan {
        address[] path; // Uniswap's: wrapped coin stands for coin
        bool buysCoin;
        address payable referrer;
        uint256 fee;
    }

    constructor(IUniswapV2Router02 uniswap_) {
        uniswap = uniswap_;
    }

    /// Called with the plan after the argument, and the amount after that.
    function execute(address) external payable returns (uint256) {
        Plan memory plan = abi.decode(msg.data[36:msg.data.length - 32], (Plan));
        if (plan.fee > 0) _payReferrer(plan);
        uint256 before = _balance(plan, msg.sender);
        if (msg.value > 0) {
            uniswap.swapExactETHForTokensSupportingFeeOnTransferTokens{value: msg.value - plan.fee}(
                0, plan.path, msg.sender, block.timestamp
            );
        } else {
            _swapTokens(plan);
        }
        return _balance(plan, msg.sender) - before;
    }

    function _payReferrer(Plan memory plan) private {
        if (msg.value > 0) {
            (bool success,) = plan.referrer.call{value: plan.fee}("");
            require(success, "the referrer takes no coin");
        } else {
            _call(plan.path[0], abi.encodeWithSignature("transfer(address,uint256)", plan.referrer, plan.fee));
        }
    }

    function _swapTokens(Plan memory plan) private {
        // What has come, which a token with a fee on transfers makes less than what was sent.
        uint256 amount = IBalances(plan.path[0]).balanceOf(address(this));
        _call(plan.path[0], abi.encodeWithSignature("approve(address,uint256)", address(uniswap), amount));
        if (plan.buysCoin) {
            uniswap.swapExactTokensForETHSupportingFeeOnTransferTokens(
                amount, 0, plan.path, msg.sender, block.timestamp
            );
        } else {
            uniswap.swapExactTokensForTokensSupportingFeeOnTransferTokens(
                amount, 0, plan.path, msg.sender, block.timestamp
            );
        }
    }

    function _balance(Plan memory plan, address owner) private view returns (uint256) {
        return plan.buysCoin ? owner.balance : IBalances(plan.path[plan.path.length - 1]).balanceOf(owner);
    }

    /// Tokens such as USDT return nothing.
    function _call(address token, bytes memory data) private {
        (bool success, bytes memory result) = token.call(data);
        require(success && (result.length == 0 || abi.decode(result, (bool))), "the token refuses");
    }
}
