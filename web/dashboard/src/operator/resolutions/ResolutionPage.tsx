import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { Address } from "../../ui/Address";
import { usePathPart } from "../../ui/address";
import { Amount } from "../../ui/Amount";
import { ChainName } from "../../ui/ChainName";
import { Copyable } from "../../ui/Copyable";
import { Meaning } from "../../ui/Meaning";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Status } from "../../ui/Status";
import { Moment, When } from "../../ui/When";
import { api, unwrap, useWords, type Schemas } from "../api";
import { MerchantLink } from "../merchants/MerchantLink";

import { ResolutionActs } from "./ResolutionActs";

/** One deposit that belonged to no order: why, and what was decided, or can be. */
export function ResolutionPage() {
  const { t } = useWords();
  const depositId = usePathPart("depositId");
  const query = useQuery({
    queryKey: ["resolution", "one", depositId],
    queryFn: async ({ signal }) => {
      const params = { path: { depositId } };
      return (await unwrap(api.GET("/api/admin/resolutions/{depositId}", { params, signal }))).resolution;
    },
  });
  return (
    <QueryPage title={t("resolutions.one")} query={query}>
      {(held) => <Shown held={held} />}
    </QueryPage>
  );
}

function Shown({ held }: { readonly held: Schemas["OperatorResolution"] }) {
  const { t } = useWords();
  const { deposit } = held;
  return (
    <Page
      title={t("resolutions.one")}
      tab={`${t("resolutions.one")} ${deposit.depositId}`}
      lead={
        <span className="row">
          <Copyable text={deposit.depositId}>
            <code>{deposit.depositId}</code>
          </Copyable>
          <When at={deposit.minedAt} />
        </span>
      }
      actions={deposit.resolution === null && <ResolutionActs held={held} />}
    >
      <Section title={t("record.resolution")}>
        <Facts
          facts={[
            [
              t("record.resolution"),
              deposit.resolution === null ? (
                t("resolutions.open")
              ) : (
                <Meaning key="resolution" of="resolution" code={deposit.resolution} />
              ),
            ],
            [t("common:resolutions.came"), <Moment key="came" at={deposit.minedAt} />],
            [
              t("resolutions.decidedAt"),
              deposit.resolvedAt === null ? null : <Moment key="decided" at={deposit.resolvedAt} />,
            ],
            [t("record.why"), <Meaning key="why" of="held" code={deposit.reason} />],
            [t("record.amount"), <Amount key="amount" value={deposit.amount} token={deposit.token} />],
            [t("record.held"), <Amount key="held" value={deposit.heldAmount} token={deposit.token} />],
          ]}
        />
      </Section>
      <Section title={t("record.whose")}>
        <Facts
          facts={[
            [t("record.merchant"), <MerchantLink key="merchant" of={held} />],
            [t("common:mode.title"), t(`common:mode.${held.mode}`)],
            [
              t("one.deposits"),
              <Link key="deposit" to={`/deposits/${deposit.depositId}`}>
                {deposit.depositId}
              </Link>,
            ],
            [
              t("record.payment"),
              deposit.paymentId === null ? null : (
                <span key="payment" className="row">
                  <Link to={`/payments/${deposit.paymentId}`}>{deposit.paymentId}</Link>
                  {deposit.paymentStatus !== null && <Status value={deposit.paymentStatus} />}
                </span>
              ),
            ],
            [t("record.order"), deposit.orderId],
            [
              t("record.account"),
              deposit.accountId === null ? null : (
                <Link key="account" to={`/accounts/${deposit.accountId}`}>
                  {deposit.accountId}
                </Link>
              ),
            ],
            [t("record.externalId"), deposit.externalId],
            [t("record.chain"), <ChainName key="chain" of={deposit.chain} />],
            [t("record.address"), <Address key="address" value={deposit.address} whole />],
            [
              t("record.from"),
              deposit.fromAddress === null ? null : <Address key="from" value={deposit.fromAddress} whole />,
            ],
            [t("record.tx"), <Address key="tx" value={deposit.txHash} whole />],
          ]}
        />
      </Section>
    </Page>
  );
}
