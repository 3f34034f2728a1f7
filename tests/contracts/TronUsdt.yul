// Behaves and costs like USDT on TRON: transfer answers 0 although it succeeds, ignores what stands in the padding of an
// address, refuses who is blacklisted, and can keep a fee. Anyone may mint, blacklist and charge: it is for tests.
//
// The fillers make a transfer cost to the unit what the main network's does, at an energy factor of 34000: before the
// recipient's balance is written 7,662 energy and a penalty of 25,905, in all 14,650 and 49,635, and 15,000 and 51,000
// more where the recipient had nothing. They are operations that come to nothing, in the numbers that give both sums.
object "TronUsdt" {
    code {
        // The symbol as 32 bytes and the decimals stand behind the code.
        datacopy(0, add(dataoffset("runtime"), datasize("runtime")), 64)
        sstore(0, mload(0))
        sstore(1, mload(32))
        datacopy(0, dataoffset("runtime"), datasize("runtime"))
        return(0, datasize("runtime"))
    }
    object "runtime" {
        code {
            if callvalue() { revert(0, 0) }
            switch shr(224, calldataload(0))
            case 0xa9059cbb /* transfer */ {
                if sload(6) { charge(account(4), calldataload(36)) }
                move(caller(), account(4), calldataload(36))
                answer(0)
            }
            case 0x70a08231 /* balanceOf */ { answer(sload(entry(account(4), 2))) }
            case 0x40c10f19 /* mint */ {
                let slot := entry(account(4), 2)
                sstore(slot, add(sload(slot), calldataload(36)))
                sstore(3, add(sload(3), calldataload(36)))
                tell(0, account(4), calldataload(36))
                stop()
            }
            case 0x23b872dd /* transferFrom */ {
                let slot := entry(caller(), entry(account(4), 4))
                let allowed := sload(slot)
                if lt(allowed, calldataload(68)) { revert(0, 0) }
                sstore(slot, sub(allowed, calldataload(68)))
                move(account(4), account(36), calldataload(68))
                answer(0)
            }
            case 0x095ea7b3 /* approve */ {
                let slot := entry(account(4), entry(caller(), 4))
                // It must go through zero before it changes.
                if and(gt(calldataload(36), 0), gt(sload(slot), 0)) { revert(0, 0) }
                sstore(slot, calldataload(36))
                answer(1)
            }
            case 0xdd62ed3e /* allowance */ { answer(sload(entry(account(36), entry(account(4), 4)))) }
            case 0x95d89b41 /* symbol */ { text(sload(0)) }
            case 0x06fdde03 /* name */ { text(sload(0)) }
            case 0x313ce567 /* decimals */ { answer(sload(1)) }
            case 0x18160ddd /* totalSupply */ { answer(sload(3)) }
            case 0x0ecb93c0 /* addBlackList */ { sstore(entry(account(4), 5), 1) stop() }
            case 0xe4997dc5 /* removeBlackList */ { sstore(entry(account(4), 5), 0) stop() }
            case 0xe47d6060 /* isBlackListed */ { answer(sload(entry(account(4), 5))) }
            case 0xc0324c77 /* setParams */ {
                sstore(6, calldataload(4))
                sstore(7, calldataload(36))
                sstore(8, caller())
                stop()
            }
            default { revert(0, 0) }

            function move(from, to, value) {
                if or(sload(entry(from, 5)), sload(entry(to, 5))) { revert(0, 0) }
                let slot := entry(from, 2)
                let held := sload(slot)
                if lt(held, value) { revert(0, 0) }
                sstore(slot, sub(held, value))
                slot := entry(to, 2)
                let raised := add(sload(slot), value)
                verbatim_0i_0o(hex"6000545060005450600054506000545060005450600054506000545060005450600054506000545060005450600054506000545060005450600054506000545060005450600054506000545060005450600054506000545060005450600054506000545060005450600054506000545060005450600054506000545058505850585058505850585058505850585058505850585058505850585058505850585058505850585058505850585058505850585058505850585058505850585058505850585058505850585058505850585058505850585058505850585058505850585058505850585058505850475060005060006000023150")
                sstore(slot, raised)
                verbatim_0i_0o(hex"60005450600054505850585058505850585058505850585058505850585058505b5b5b")
                tell(from, to, value)
            }

            // With a fee, the recipient gets the rest, and whoever set it gets the fee in a transfer of its own.
            function charge(to, value) {
                if or(sload(entry(caller(), 5)), sload(entry(to, 5))) { revert(0, 0) }
                let slot := entry(caller(), 2)
                if lt(sload(slot), value) { revert(0, 0) }
                sstore(slot, sub(sload(slot), value))
                let fee := div(mul(value, sload(6)), 10000)
                if gt(fee, sload(7)) { fee := sload(7) }
                for {} 1 {} {
                    slot := entry(to, 2)
                    sstore(slot, add(sload(slot), sub(value, fee)))
                    mstore(0, sub(value, fee))
                    log3(0, 32, 0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef, caller(), to)
                    if iszero(fee) { break }
                    value := fee
                    fee := 0
                    to := sload(8)
                }
                mstore(0, 0)
                return(0, 32)
            }

            function tell(from, to, value) {
                mstore(0, value)
                log3(0, 32, 0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef, from, to)
            }

            function account(offset) -> address_ {
                address_ := and(calldataload(offset), 0xffffffffffffffffffffffffffffffffffffffff)
            }

            function entry(key, mapping_) -> slot {
                mstore(0, key)
                mstore(32, mapping_)
                slot := keccak256(0, 64)
            }

            function answer(word) {
                mstore(0, word)
                return(0, 32)
            }

            function text(word) {
                let length := 0
                for {} and(lt(length, 32), gt(byte(length, word), 0)) {} { length := add(length, 1) }
                mstore(0, 32)
                mstore(32, length)
                mstore(64, word)
                return(0, 96)
            }
        }
    }
}
