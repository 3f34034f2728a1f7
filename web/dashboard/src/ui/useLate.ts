import { useEffect, useState } from "react";

/** What other things follow soon stays as it is: to dim it, or to draw others, would be for nobody to see. */
const LATE_MS = 150;

/** Say whether something is waited for so long that it is worth to show that. */
export function useLate(isWaiting: boolean): boolean {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    if (!isWaiting) return;
    const timer = setTimeout(() => {
      setLate(true);
    }, LATE_MS);
    return () => {
      clearTimeout(timer);
      setLate(false);
    };
  }, [isWaiting]);
  return isWaiting && isLate;
}
