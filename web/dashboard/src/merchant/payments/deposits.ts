import type { Schemas } from "../queries";

export type Deposit = Schemas["DepositView"];
export type Orphaned = Schemas["OrphanedDeposit"];

/** Return deposits by a key each. They have no id, and one transaction may bring the same amount more than once. */
export function keyed<One extends Deposit | Orphaned>(deposits: readonly One[]): readonly (readonly [string, One])[] {
  const found = new Map<string, number>();
  return deposits.map((one) => {
    const brought = [one.chain, one.txHash, one.token, one.amount].join(" ");
    const number = (found.get(brought) ?? 0) + 1;
    found.set(brought, number);
    return [`${brought} ${String(number)}`, one] as const;
  });
}
