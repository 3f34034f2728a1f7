import { NumberInput } from "@mantine/core";
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
  return (
    <NumberInput
      classNames={{ wrapper: styles.percent }}
      label={t("exchange.slippage")}
      description={t("exchange.slippageWords")}
      min={0}
      max={SLIPPAGE_MAX}
      decimalScale={2}
      suffix=" %"
      value={value ?? ""}
      error={refused}
      onChange={(typed) => {
        const percent = typed === "" ? null : Number(typed);
        if (Number.isNaN(percent)) return; // a sign or a point alone
        onChoice(percent);
      }}
    />
  );
}
