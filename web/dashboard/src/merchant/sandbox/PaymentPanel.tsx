import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { showAmount } from "../../ui/format";
import { fromUnits, minus, plus, toUnits } from "../../ui/units";
import { useNow } from "../../ui/When";
import { api, unwrap } from "../api";
import { coinsQuery } from "../coins/queries";
import { usePermitted, useProjectId } from "../project";
import type { PaymentDetail } from "../queries";

import { ChainActs } from "./ChainActs";
import { Panel } from "./Panel";
import { SendTo } from "./SendTo";
import { useSandbox } from "./useSandbox";

const MINUTE_MS = 60_000;
const HOUR_MIN = 60;

/** Pays a payment of the sandbox, rightly or wrongly, and has its chain confirm that, take it back, or grow older. */
export function PaymentPanel({ payment }: { readonly payment: PaymentDetail }) {
  if (!usePermitted("payments")) return null;
  return (
    <Panel>
      <Pay payment={payment} />
      <OtherToken payment={payment} />
      <Chain payment={payment} />
    </Panel>
  );
}

function Pay({ payment }: { readonly payment: PaymentDetail }) {
  const { t } = useTranslation();
  const missing = minus(payment.expectedAmount, payment.receivedAmount);
  const part = (amount: string, divisor: bigint) =>
    fromUnits(BigInt(toUnits(amount, payment.decimals) ?? "0") / divisor, payment.decimals);
  const half = part(missing, 2n);
  const tenth = part(payment.expectedAmount, 10n);
  return (
    <div className="row">
      {missing !== "0" && <PayButton payment={payment} amount={missing} what="exact" isMain />}
      {half !== "0" && <PayButton payment={payment} amount={half} what="less" />}
      {tenth !== "0" && <PayButton payment={payment} amount={plus(missing, tenth)} what="more" />}
      {missing === "0" && <span className="muted">{t("sandbox.nothingMissing")}</span>}
    </div>
  );
}

interface PayButtonProps {
  readonly payment: PaymentDetail;
  readonly amount: string;
  readonly what: "exact" | "less" | "more";
  readonly isMain?: boolean;
}

function PayButton({ payment, amount, what, isMain = false }: PayButtonProps) {
  const { t, i18n } = useTranslation();
  const params = { path: { projectId: useProjectId() } };
  const pay = useSandbox(() => {
    const body = { paymentId: payment.paymentId, amount };
    return unwrap(api.POST("/api/dashboard/projects/{projectId}/sandbox/deposit", { params, body }));
  });
  const shown = `${showAmount(amount, i18n.language).text} ${payment.token}`;
  return (
    <>
      <Button variant={isMain ? "filled" : "default"} loading={pay.isRunning} onClick={() => void pay.run()}>
        {t(`sandbox.${what}`, { amount: shown })}
      </Button>
      {pay.outcome}
    </>
  );
}

/** A customer may send what was not asked for: on a payment's chain, any coin there is. */
function OtherToken({ payment }: { readonly payment: PaymentDetail }) {
  const { t } = useTranslation();
  const { data: coins = [] } = useQuery(coinsQuery(useProjectId()));
  const others = coins.filter((one) => one.chain === payment.chain && one.token !== payment.token);
  if (others.length === 0) return null;
  return <SendTo to={{ paymentId: payment.paymentId }} coins={others} act={t("sandbox.other")} />;
}

function Chain({ payment }: { readonly payment: PaymentDetail }) {
  const now = useNow();
  // Of its deposits, the one that the fewest blocks have to be replaced for.
  const [newest] = payment.deposits.map((one) => one.confirmations).toSorted((one, other) => one - other);
  const left = Math.ceil((Date.parse(payment.expiresAt) - now) / MINUTE_MS) + 1;
  return (
    <ChainActs
      chain={payment.chain}
      blocks={Math.max(1, payment.requiredConfirmations)}
      depth={(newest ?? 0) + 1}
      minutes={left > 1 ? left : HOUR_MIN}
    />
  );
}
