import { Link } from "@tanstack/react-router";

import { Copyable } from "./Copyable";
import { shortId } from "./format";

interface IdProps {
  readonly value: string;
  /** Where the page of it is, if it has one. */
  readonly page?: string | undefined;
}

/** An id in a list, short: the way to its page, or else a click copies it whole. */
export function Id({ value, page }: IdProps) {
  const short = <code>{shortId(value)}</code>;
  return page === undefined ? <Copyable text={value}>{short}</Copyable> : <Link to={page}>{short}</Link>;
}
