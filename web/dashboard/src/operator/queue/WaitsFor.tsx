import { None } from "../../ui/None";
import { Said } from "../../ui/Said";

import type { Intent } from "./queries";

interface WaitsForProps {
  readonly what: Intent["waitsFor"];
  /** Show the API's own sentence as well, which may say how far it is. */
  readonly withOwn?: boolean;
}

/** What something waits for before it is sent. The signer's reasons begin with its name. */
export function WaitsFor({ what, withOwn = false }: WaitsForProps) {
  if (what === null) return <None />;
  return <Said of="waits" code={what.code.replace("signer: ", "")} words={what.text} withOwn={withOwn} />;
}
