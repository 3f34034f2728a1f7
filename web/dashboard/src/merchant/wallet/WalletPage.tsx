import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { ChainName, useChainName } from "../../ui/ChainName";
import { Amount } from "../../ui/Amount";
import { Empty } from "../../ui/Feedback";
import { showList } from "../../ui/format";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { Plain } from "../../ui/Plain";
import { Scannable } from "../../ui/Scannable";
import { usePermitted, useProjectId } from "../project";
import type { Schemas } from "../queries";

import { addressesQuery, walletQuery } from "./queries";
import { Statement } from "./Statement";

type Balance = Schemas["BalanceView"];

/** What the merchant has, coin by coin, and every movement of it. */
export function WalletPage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const wallet = useQuery(walletQuery(projectId));
  const mayPay = usePermitted("payouts");
  return (
    <Page
      title={t("wallet.title")}
      lead={t("wallet.lead")}
      actions={
        mayPay && (
          <Button component={Link} to={`/${projectId}/payouts/new`}>
            {t("payouts.new")}
          </Button>
        )
      }
    >
      <Section title={t("wallet.balances")} flush>
        <QueryView query={wallet}>{({ balances }) => <Balances balances={balances} />}</QueryView>
      </Section>
      <Section title={t("wallet.addresses")}>
        <Addresses projectId={projectId} />
      </Section>
      <Statement projectId={projectId} />
    </Page>
  );
}

function Balances({ balances }: { readonly balances: readonly Balance[] }) {
  const { t } = useTranslation();
  if (balances.length === 0) return <Empty title={t("wallet.none")} />;
  return (
    <Plain
      label={t("wallet.balances")}
      rows={balances}
      rowKey={(one) => `${one.chain} ${one.token} ${one.contractAddress ?? ""}`}
      columns={[
        { id: "token", title: t("payments.token"), cell: (one) => <b>{one.token}</b> },
        { id: "chain", title: t("payments.chain"), cell: (one) => <ChainName of={one.chain} /> },
        { id: "available", title: t("wallet.available"), atEnd: true, cell: (one) => <Amount value={one.available} /> },
        { id: "pending", title: t("wallet.pending"), atEnd: true, cell: (one) => <Amount value={one.pending} /> },
        { id: "held", title: t("wallet.held"), atEnd: true, cell: (one) => <Amount value={one.held} /> },
      ]}
    />
  );
}

function Addresses({ projectId }: { readonly projectId: string }) {
  const { t, i18n } = useTranslation();
  const chainName = useChainName();
  const query = useQuery(addressesQuery(projectId));
  return (
    <QueryView query={query} lines={2}>
      {(addresses) =>
        addresses.length === 0 ? (
          <Empty title={t("wallet.noAddresses")} />
        ) : (
          <Facts
            facts={addresses.map((one) => [
              showList(one.chains.map(chainName), i18n.language),
              <Scannable key={one.address} value={one.address} />,
            ])}
          />
        )
      }
    </QueryView>
  );
}
