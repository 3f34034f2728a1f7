import styles from "./Address.module.css";
import { Copyable } from "./Copyable";
import { addressParts } from "./format";

interface AddressProps {
  readonly value: string;
  /** Show all of it. Otherwise its middle is left out where there is little room. */
  readonly whole?: boolean;
}

/** An address or a transaction's hash: what people compare, its ends, stands out. A click copies it whole. */
export function Address({ value, whole = false }: AddressProps) {
  const { head, middle, tail } = addressParts(value);
  return (
    <Copyable text={value}>
      <bdi dir="ltr" className={whole ? styles.whole : styles.address} data-whole={whole || undefined}>
        <b>{head}</b>
        {middle !== "" && <span className={styles.middle}>{whole ? middle : "…"}</span>}
        <b>{tail}</b>
      </bdi>
    </Copyable>
  );
}
