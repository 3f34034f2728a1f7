import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Amount } from "../../ui/Amount";
import { Empty } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { useProjectId } from "../project";

import { accountBalancesQuery } from "./queries";

/** What an end user has sent in all, coin by coin. What was paid out of it is not subtracted here. */
export function AccountBalances({ accountId }: { readonly accountId: string }) {
  const { t } = useTranslation();
  const query = useQuery(accountBalancesQuery(useProjectId(), accountId));
  return (
    <Section title={t("account.balances")} flush>
      <QueryView query={query}>
        {(balances) =>
          balances.length === 0 ? (
            <Empty title={t("account.noDeposits")} />
          ) : (
            <Plain
              label={t("account.balances")}
              rows={balances}
              rowKey={(one) => `${one.chain} ${one.token} ${one.contractAddress ?? ""}`}
              columns={[
                { id: "token", title: t("payments.token"), cell: (one) => <b>{one.token}</b> },
                {
                  id: "chain",
                  title: t("payments.chain"),
                  isBesideFirst: true,
                  cell: (one) => <ChainName of={one.chain} />,
                },
                {
                  id: "balance",
                  title: t("account.confirmed"),
                  atEnd: true,
                  cell: (one) => <Amount value={one.balance} />,
                },
                {
                  id: "pending",
                  title: t("wallet.pending"),
                  atEnd: true,
                  cell: (one) => <Amount value={one.pending} />,
                },
                { id: "held", title: t("wallet.held"), atEnd: true, cell: (one) => <Amount value={one.held} /> },
                {
                  id: "deposits",
                  title: t("payment.deposits"),
                  atEnd: true,
                  cell: (one) => <span className="number">{one.deposits}</span>,
                },
              ]}
            />
          )
        }
      </QueryView>
    </Section>
  );
}
