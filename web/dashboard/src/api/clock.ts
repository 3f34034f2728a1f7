/** What time it is at the gateway: the clock of a reader's machine may be wrong by hours. */

/** Answers take their time, and say it in whole seconds: a clock that is no further off is right. */
const RIGHT_MS = 60_000;

let offMs = 0;

/** Learn from an answer of the gateway's how far this machine's clock is off. */
export function learnTime(answer: Response): void {
  const at = Date.parse(answer.headers.get("Date") ?? "");
  if (Number.isNaN(at)) return;
  const found = at - Date.now();
  offMs = Math.abs(found) < RIGHT_MS ? 0 : found;
}

/** Return what the gateway's clock showed at a moment of this machine's, both in milliseconds as `Date.now` has them. */
export function atGateway(moment: number): number {
  return moment + offMs;
}

/** Return the moment that it is at the gateway, in milliseconds as `Date.now` has it. */
export function gatewayNow(): number {
  return atGateway(Date.now());
}
