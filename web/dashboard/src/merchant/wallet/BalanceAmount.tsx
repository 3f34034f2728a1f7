import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { AmountText } from "../../ui/AmountText";
import { toUnits } from "../../ui/units";
import type { Schemas } from "../queries";

interface BalanceAmountProps {
  readonly label: string;
  /** What it is to be taken of; none while that is not chosen. */
  readonly balance: Schemas["BalanceView"] | undefined;
  readonly value: string;
  /** What the API says of it. */
  readonly refused?: string | undefined;
  readonly onText: (amount: string) => void;
}

/** How much of a balance: with no more decimals than its token has, or all that is available. */
export function BalanceAmount({ label, balance, value, refused, onText }: BalanceAmountProps) {
  const { t } = useTranslation();
  const wanted = value.trim();
  const isWrong = wanted !== "" && balance !== undefined && toUnits(wanted, balance.decimals) === null;
  return (
    <div className="row">
      <AmountText
        label={label}
        required
        value={value}
        error={isWrong ? t("exchange.badAmount", { count: balance.decimals }) : refused}
        onText={onText}
      />
      {balance !== undefined && (
        <Button
          variant="default"
          className="besideInput"
          disabled={toUnits(balance.available, balance.decimals) === null}
          onClick={() => {
            onText(balance.available);
          }}
        >
          {t("exchange.all")}
        </Button>
      )}
    </div>
  );
}
