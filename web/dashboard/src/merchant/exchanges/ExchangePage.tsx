import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { usePathPart } from "../../ui/address";
import { Amount, Rate } from "../../ui/Amount";
import { Copyable } from "../../ui/Copyable";
import { showPercent } from "../../ui/format";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Failed, Waits } from "../../ui/Said";
import { Status } from "../../ui/Status";
import { ratio } from "../../ui/units";
import { Moment, When } from "../../ui/When";
import { MoneyBack } from "../MoneyBack";
import { PaymentEvents } from "../payments/PaymentEvents";
import { useProjectId } from "../project";
import { ExchangePanel } from "../sandbox/SentPanel";

import { exchangeQuery, type Exchange } from "./queries";

const POLL_MS = 5_000;

/** One swap or bridge: what was given, what came, and where it stands on both chains. */
export function ExchangePage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const query = useQuery({
    ...exchangeQuery(projectId, usePathPart("txnId")),
    refetchInterval: ({ state }) => (state.data === undefined || state.data.status === "pending" ? POLL_MS : false),
  });
  return (
    <QueryPage title={t("exchange.one")} query={query}>
      {(exchange) => <Shown projectId={projectId} exchange={exchange} />}
    </QueryPage>
  );
}

function Shown({ projectId, exchange }: { readonly projectId: string; readonly exchange: Exchange }) {
  const { t, i18n } = useTranslation();
  const { destAmount, txHash, destTxHash, payoutId, completedAt } = exchange;
  const rate = destAmount === null ? null : ratio(exchange.sourceAmount, destAmount);
  const title = t(`exchange.kinds.${exchange.kind}`);
  return (
    <Page
      title={title}
      tab={`${title} ${exchange.txnId}`}
      lead={
        <span className="row">
          <Status value={exchange.status} />
          <Copyable text={exchange.txnId}>
            <code>{exchange.txnId}</code>
          </Copyable>
          <When at={exchange.createdAt} />
        </span>
      }
    >
      <ExchangePanel exchange={exchange} />
      <Section title={t("payment.amounts")}>
        <Facts
          facts={[
            [
              t("exchange.given"),
              <span key="given">
                <Amount value={exchange.sourceAmount} token={exchange.sourceToken} /> ·{" "}
                <ChainName of={exchange.sourceChain} />
              </span>,
            ],
            [
              t("exchange.came"),
              destAmount === null ? null : (
                <span key="came">
                  <Amount value={destAmount} token={exchange.destToken} /> · <ChainName of={exchange.destChain} />
                </span>
              ),
            ],
            [
              t("exchange.atLeast"),
              <span key="least">
                <Amount value={exchange.destAmountMin} token={exchange.destToken} /> ·{" "}
                <ChainName of={exchange.destChain} />
              </span>,
            ],
            [
              t("payment.rate"),
              rate === null ? null : (
                <bdi key="rate" dir="ltr" className="number">
                  1 {exchange.sourceToken} = <Rate value={rate} /> {exchange.destToken}
                </bdi>
              ),
            ],
            [
              t("payout.waits"),
              exchange.waitsFor === null ? null : (
                <Waits key="waits" code={exchange.waitsFor} words={exchange.waitsForText ?? exchange.waitsFor} />
              ),
            ],
            [
              t("payout.error"),
              exchange.error === null ? null : (
                <Failed key="error" code={exchange.errorCode ?? ""} words={exchange.error} />
              ),
            ],
            [t("payout.money"), exchange.status === "failed" ? <MoneyBack key="money" /> : null],
          ]}
        />
      </Section>
      <Section title={t("payment.details")}>
        <Facts
          facts={[
            [t("exchange.mode"), t(`exchange.modes.${exchange.mode}`)],
            [t("exchange.provider"), exchange.provider],
            [t("exchange.slippage"), showPercent(String(exchange.slippagePercent), i18n.language)],
            [t("exchange.recipient"), <Address key="recipient" value={exchange.recipient} whole />],
            [t("exchange.sourceTx"), txHash === null ? null : <Address key="tx" value={txHash} whole />],
            [t("exchange.destTx"), destTxHash === null ? null : <Address key="destTx" value={destTxHash} whole />],
            [
              t("payout.title"),
              payoutId === null ? null : (
                <Link key="payout" to={`/${projectId}/payouts/${payoutId}`}>
                  {payoutId}
                </Link>
              ),
            ],
            [t("payout.completed"), completedAt === null ? null : <Moment key="at" at={completedAt} />],
          ]}
        />
      </Section>
      <PaymentEvents
        projectId={projectId}
        paymentId={exchange.txnId}
        version={`${exchange.status} ${exchange.updatedAt}`}
      />
    </Page>
  );
}
