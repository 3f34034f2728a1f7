/** Of a smaller amount no decimal is shown. */
const LEAST_SHOWN = 1e-8;

/** Return what there is to say of a limit: nothing of one that is less than is shown of an amount. */
export function limitOf(amount: string | null): string | null {
  return amount === null || Number(amount) < LEAST_SHOWN ? null : amount;
}
