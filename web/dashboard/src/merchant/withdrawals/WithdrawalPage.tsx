import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { usePathPart } from "../../ui/address";
import { Amount } from "../../ui/Amount";
import { Copyable } from "../../ui/Copyable";
import { NotFound } from "../../ui/NotFound";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Failed, Waits } from "../../ui/Said";
import { Status } from "../../ui/Status";
import { Moment, When } from "../../ui/When";
import { api, unwrap } from "../api";
import { CancelSent } from "../CancelSent";
import { MoneyBack } from "../MoneyBack";
import { PaymentEvents } from "../payments/PaymentEvents";
import { ENDED, GIVEN_BACK } from "../payouts/queries";
import { usePermitted, useProjectId } from "../project";
import { SentPanel } from "../sandbox/SentPanel";

import { withdrawalQuery, type Withdrawal } from "./queries";

const POLL_MS = 5_000;

/** One withdrawal: where it goes, how far it is, and what it waits for. */
export function WithdrawalPage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const query = useQuery({
    ...withdrawalQuery(projectId, usePathPart("withdrawalId")),
    refetchInterval: ({ state }) => (state.data !== undefined && ENDED.has(state.data.status) ? false : POLL_MS),
  });
  return (
    <QueryPage title={t("withdrawal.one")} query={query}>
      {(withdrawal) =>
        // The API reads a withdrawal of any project of the merchant, which may be of the other mode.
        withdrawal.projectId === projectId ? (
          <Shown withdrawal={withdrawal} />
        ) : (
          <Page title={t("withdrawal.one")}>
            <NotFound />
          </Page>
        )
      }
    </QueryPage>
  );
}

function Shown({ withdrawal }: { readonly withdrawal: Withdrawal }) {
  const { t } = useTranslation();
  const { fee, withdrawalId, txHash, completedAt } = withdrawal;
  return (
    <Page
      title={t("withdrawal.one")}
      tab={`${t("withdrawal.one")} ${withdrawalId}`}
      lead={
        <span className="row">
          <Status value={withdrawal.status} />
          <Copyable text={withdrawalId}>
            <code>{withdrawalId}</code>
          </Copyable>
          <When at={withdrawal.createdAt} />
        </span>
      }
      actions={<Cancel withdrawal={withdrawal} />}
    >
      <SentPanel sent={withdrawal} id={withdrawalId} />
      <Section title={t("payment.amounts")}>
        <Facts
          facts={[
            [t("payments.amount"), <Amount key="amount" value={withdrawal.amount} token={withdrawal.token} />],
            [t("payments.chain"), <ChainName key="chain" of={withdrawal.chain} />],
            [t("payouts.to"), <Address key="to" value={withdrawal.toAddress} whole />],
            [t("payout.tag"), withdrawal.toTag],
            [t("payout.tx"), txHash === null ? null : <Address key="tx" value={txHash} whole />],
            [t("payout.fee"), fee === null ? null : <Amount key="fee" value={fee.amount} token={fee.token} />],
            [
              t("payout.waits"),
              withdrawal.waitsFor === null ? null : (
                <Waits key="waits" code={withdrawal.waitsFor} words={withdrawal.waitsForText ?? withdrawal.waitsFor} />
              ),
            ],
            [
              t("payout.error"),
              withdrawal.error === null ? null : (
                <Failed key="error" code={withdrawal.errorCode ?? ""} words={withdrawal.error} />
              ),
            ],
            [t("payout.money"), GIVEN_BACK.has(withdrawal.status) ? <MoneyBack key="money" /> : null],
            [t("payout.completed"), completedAt === null ? null : <Moment key="at" at={completedAt} />],
          ]}
        />
      </Section>
      <PaymentEvents
        projectId={withdrawal.projectId}
        paymentId={withdrawalId}
        version={`${withdrawal.status} ${withdrawal.updatedAt}`}
      />
    </Page>
  );
}

function Cancel({ withdrawal }: { readonly withdrawal: Withdrawal }) {
  const { t } = useTranslation();
  if (!usePermitted("withdrawals")) return null;
  const params = { path: { withdrawalId: withdrawal.withdrawalId } };
  const path = "/api/dashboard/withdrawals/{withdrawalId}/cancel";
  const cancel = () => unwrap(api.POST(path, { params }));
  return <CancelSent sent={withdrawal} title={t("withdrawal.cancelTitle")} cancel={cancel} />;
}
