import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { usePathPart } from "../../ui/address";
import { Amount } from "../../ui/Amount";
import { ChainName } from "../../ui/ChainName";
import { Copyable } from "../../ui/Copyable";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Failed, Waits } from "../../ui/Said";
import { Status } from "../../ui/Status";
import { Moment, When } from "../../ui/When";
import { api, unwrap } from "../api";
import { CancelSent } from "../CancelSent";
import { PaymentEvents } from "../payments/PaymentEvents";
import { ENDED } from "../payouts/queries";
import { usePermitted, useProjectId } from "../project";
import { SentPanel } from "../sandbox/SentPanel";

import { refundQuery, type Refund } from "./queries";

const POLL_MS = 5_000;

/** One refund: what it sends back and where to, how far it is, and what it waits for. */
export function RefundPage() {
  const { t } = useTranslation();
  const query = useQuery({
    ...refundQuery(useProjectId(), usePathPart("refundId")),
    refetchInterval: ({ state }) => (state.data !== undefined && ENDED.has(state.data.status) ? false : POLL_MS),
  });
  return (
    <QueryPage title={t("refund.one")} query={query}>
      {(refund) => <Shown refund={refund} />}
    </QueryPage>
  );
}

function Shown({ refund }: { readonly refund: Refund }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const { refundId, paymentId, txHash, completedAt } = refund;
  return (
    <Page
      title={t("refund.one")}
      tab={`${t("refund.one")} ${refundId}`}
      lead={
        <span className="row">
          <Status value={refund.status} />
          <Copyable text={refundId}>
            <code>{refundId}</code>
          </Copyable>
          <When at={refund.createdAt} />
        </span>
      }
      actions={<Cancel refund={refund} />}
    >
      <SentPanel sent={refund} id={refundId} />
      <Section title={t("payment.amounts")}>
        <Facts
          facts={[
            [t("payments.amount"), <Amount key="amount" value={refund.amount} token={refund.token} />],
            [t("payments.chain"), <ChainName key="chain" of={refund.chain} />],
            [
              t("payment.title"),
              paymentId === null ? null : (
                <Link key="payment" to={`/${projectId}/payments/${paymentId}`}>
                  {paymentId}
                </Link>
              ),
            ],
            [t("payouts.to"), <Address key="to" value={refund.toAddress} whole />],
            [t("payout.tag"), refund.toTag],
            [t("refund.reason"), refund.reason === null ? null : <bdi key="reason">{refund.reason}</bdi>],
            [t("payout.tx"), txHash === null ? null : <Address key="tx" value={txHash} whole />],
            [
              t("payout.waits"),
              refund.waitsFor === null ? null : (
                <Waits key="waits" code={refund.waitsFor} words={refund.waitsForText ?? refund.waitsFor} />
              ),
            ],
            [
              t("payout.error"),
              refund.error === null ? null : <Failed key="error" code={refund.errorCode ?? ""} words={refund.error} />,
            ],
            [t("payout.completed"), completedAt === null ? null : <Moment key="at" at={completedAt} />],
          ]}
        />
      </Section>
      <PaymentEvents projectId={projectId} paymentId={refundId} version={`${refund.status} ${refund.updatedAt}`} />
    </Page>
  );
}

function Cancel({ refund }: { readonly refund: Refund }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  if (!usePermitted("refunds")) return null;
  const params = { path: { projectId, refundId: refund.refundId } };
  const path = "/api/dashboard/projects/{projectId}/payments/refunds/{refundId}/cancel";
  return <CancelSent sent={refund} title={t("refund.cancelTitle")} cancel={() => unwrap(api.POST(path, { params }))} />;
}
