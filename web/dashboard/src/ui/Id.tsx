import { Copyable } from "./Copyable";
import { shortId } from "./format";

/** An id in a list, short. A click copies it whole. */
export function Id({ value }: { readonly value: string }) {
  return (
    <Copyable text={value}>
      <code>{shortId(value)}</code>
    </Copyable>
  );
}
