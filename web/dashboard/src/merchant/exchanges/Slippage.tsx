import { NumberInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import styles from "./Slippage.module.css";

const SLIPPAGE_MAX = 50;

interface SlippageProps {
  /** In percent; the gateway's own where nothing is chosen. */
  readonly value: number | undefined;
  /** What the API says of it. */
  readonly refused?: string | undefined;
  readonly onChoice: (percent: number | null) => void;
}

/** How much less than an offer may come out. */
export function Slippage({ value, refused, onChoice }: SlippageProps) {
  const { t } = useTranslation();
  // While it is typed, an emptied field is empty, though the gateway's own holds: the next digit would stand behind that.
  const [typed, setTyped] = useState<number | string | null>(null);
  return (
    <NumberInput
      classNames={{ wrapper: styles.percent }}
      label={t("exchange.slippage")}
      description={t("exchange.slippageWords")}
      min={0}
      max={SLIPPAGE_MAX}
      decimalScale={2}
      suffix=" %"
      value={typed ?? value ?? ""}
      error={refused}
      onBlur={() => {
        setTyped(null);
      }}
      onChange={(now) => {
        setTyped(now);
        const percent = now === "" ? null : Number(now);
        if (Number.isNaN(percent)) return; // a sign or a point alone
        onChoice(percent);
      }}
    />
  );
}
