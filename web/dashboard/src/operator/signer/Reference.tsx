import { Link } from "@tanstack/react-router";

import { shortId } from "../../ui/format";
import { Id } from "../../ui/Id";
import { InPieces } from "../../ui/InPieces";
import { usePageOfId } from "../records/found";

interface ReferenceProps {
  /** What was to be signed for: `payout:po_…`. */
  readonly value: string;
  readonly whole?: boolean;
}

/** What something is signed for, and the way to its page where it has one. */
export function Reference({ value, whole = false }: ReferenceProps) {
  const page = usePageOfId()(value.slice(value.indexOf(":") + 1));
  const text = <code>{whole ? <InPieces text={value} /> : shortId(value)}</code>;
  if (page !== undefined) return <Link to={page}>{text}</Link>;
  return whole ? text : <Id value={value} />;
}
