import { useState } from "react";

/** Say whether something is so, or was so before: what was opened once stays, and may close in its own time. */
export function useEver(isSo: boolean): boolean {
  const [wasSo, setWasSo] = useState(isSo);
  if (isSo && !wasSo) setWasSo(true);
  return isSo || wasSo;
}
