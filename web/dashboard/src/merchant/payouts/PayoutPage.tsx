import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import type { Translate } from "../../i18n";
import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { usePathPart } from "../../ui/address";
import { Amount } from "../../ui/Amount";
import { Copyable } from "../../ui/Copyable";
import { Meaning } from "../../ui/Meaning";
import { Facts, Page, Section, type Fact } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Failed, Waits } from "../../ui/Said";
import { Status } from "../../ui/Status";
import { Moment, When } from "../../ui/When";
import { api, unwrap } from "../api";
import { CancelSent } from "../CancelSent";
import { MoneyBack } from "../MoneyBack";
import { PaymentEvents } from "../payments/PaymentEvents";
import { usePermitted, useProjectId } from "../project";
import { SentPanel } from "../sandbox/SentPanel";

import { ENDED, GIVEN_BACK, isMinimum, payoutQuery, type Payout } from "./queries";

const POLL_MS = 5_000;

/** One payout: where it goes, how far it is, and what it waits for. */
export function PayoutPage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const query = useQuery({
    ...payoutQuery(projectId, usePathPart("payoutId")),
    refetchInterval: ({ state }) => (state.data !== undefined && ENDED.has(state.data.status) ? false : POLL_MS),
  });
  return (
    <QueryPage title={t("payout.title")} query={query}>
      {(payout) => <Shown projectId={projectId} payout={payout} />}
    </QueryPage>
  );
}

function Shown({ projectId, payout }: { readonly projectId: string; readonly payout: Payout }) {
  const { t } = useTranslation();
  const { fee } = payout;
  return (
    <Page
      title={t("payout.title")}
      tab={`${t("payout.title")} ${payout.payoutId}`}
      lead={
        <span className="row">
          <Status value={payout.status} />
          <Copyable text={payout.payoutId}>
            <code>{payout.payoutId}</code>
          </Copyable>
          <When at={payout.createdAt} />
        </span>
      }
      actions={<Cancel projectId={projectId} payout={payout} />}
    >
      <SentPanel sent={payout} id={payout.payoutId} />
      <Section title={t("payment.amounts")}>
        <Facts
          facts={[
            [t("statement.type"), <Meaning key="kind" of="kind" code={payout.kind} />],
            [
              t(isMinimum(payout) ? "exchange.atLeast" : "payments.amount"),
              <Amount key="amount" value={payout.amount} token={payout.token} />,
            ],
            [t("payments.chain"), <ChainName key="chain" of={payout.chain} />],
            [t("payouts.to"), <Address key="to" value={payout.toAddress} whole />],
            [t("payout.tag"), payout.toTag],
            ...(payout.swap === null ? [] : swapped(payout.swap, payout.token, projectId, t)),
            [t("payout.tx"), payout.txHash === null ? null : <Address key="tx" value={payout.txHash} whole />],
            [t("payout.fee"), fee === null ? null : <Amount key="fee" value={fee.amount} token={fee.token} />],
            [
              t("payout.waits"),
              payout.waitsFor === null ? null : (
                <Waits key="waits" code={payout.waitsFor} words={payout.waitsForText ?? payout.waitsFor} />
              ),
            ],
            [
              t("payout.error"),
              payout.error === null ? null : <Failed key="error" code={payout.errorCode ?? ""} words={payout.error} />,
            ],
            [t("payout.money"), GIVEN_BACK.has(payout.status) ? <MoneyBack key="money" /> : null],
            [
              t("payout.batch"),
              payout.batchId === null ? null : (
                <Link key="batch" to={`/${projectId}/payouts`} search={{ batchId: payout.batchId }}>
                  {payout.batchId}
                </Link>
              ),
            ],
            [t("payout.completed"), payout.completedAt === null ? null : <Moment key="at" at={payout.completedAt} />],
          ]}
        />
      </Section>
      <PaymentEvents
        projectId={projectId}
        paymentId={payout.payoutId}
        version={`${payout.status} ${payout.updatedAt}`}
      />
    </Page>
  );
}

type Swap = NonNullable<Payout["swap"]>;

/** What the payout is paid out of, where that is another coin. */
function swapped(swap: Swap, token: string, projectId: string, t: Translate): readonly Fact[] {
  return [
    [
      t("exchange.given"),
      <span key="given">
        <Amount value={swap.srcAmount} token={swap.srcToken} /> · <ChainName of={swap.srcChain} />
      </span>,
    ],
    [t("payment.expected"), <Amount key="expected" value={swap.expectedAmount} token={token} />],
    [
      t(`exchange.kinds.${swap.kind}`),
      <Link key="exchange" to={`/${projectId}/exchanges/${swap.txnId}`}>
        {swap.txnId}
      </Link>,
    ],
  ];
}

function Cancel({ projectId, payout }: { readonly projectId: string; readonly payout: Payout }) {
  const { t } = useTranslation();
  if (!usePermitted("payouts")) return null;
  const params = { path: { projectId, payoutId: payout.payoutId } };
  const path = "/api/dashboard/projects/{projectId}/wallet/payouts/{payoutId}/cancel";
  return <CancelSent sent={payout} title={t("payout.cancelTitle")} cancel={() => unwrap(api.POST(path, { params }))} />;
}
