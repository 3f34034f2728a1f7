import { Button, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { downloadCsv } from "../../api/download";
import { Address } from "../../ui/Address";
import { Amount, Fiat } from "../../ui/Amount";
import { Arrow } from "../../ui/Arrow";
import { ErrorNote } from "../../ui/Feedback";
import { List, type Column } from "../../ui/List";
import { Meaning } from "../../ui/Meaning";
import { Section } from "../../ui/Page";
import { useListSearch } from "../../ui/search";
import { useAct } from "../../ui/useAct";
import { When } from "../../ui/When";
import { merchantSession } from "../api";
import { useChains } from "../project";
import type { Schemas } from "../queries";

import { statementQuery } from "./queries";

type Movement = Schemas["TransactionView"];

const FILTERS = ["chain", "currency"] as const;

/** Every movement of the wallet, newest first, with what it belongs to; all of it as CSV. */
export function Statement({ projectId }: { readonly projectId: string }) {
  const { t } = useTranslation();
  const search = useListSearch(FILTERS);
  const { chain } = search.filters;
  const { data: chains = [] } = useChains();
  const query = useQuery(statementQuery(projectId, { page: search.page, ...(chain === undefined ? {} : { chain }) }));
  const download = useAct(() =>
    downloadCsv(
      `/api/dashboard/projects/${projectId}/wallet/transactions.csv${chain === undefined ? "" : `?chain=${chain}`}`,
      "transactions.csv",
      merchantSession,
    ),
  );
  const columns: readonly Column<Movement>[] = [
    { id: "when", title: t("statement.when"), cell: (one) => <When at={one.createdAt} /> },
    { id: "type", title: t("statement.type"), cell: (one) => <Meaning of="movement" code={one.type} /> },
    { id: "chain", title: t("payments.chain"), cell: (one) => <ChainName of={one.chain} /> },
    { id: "way", title: t("statement.way"), cell: (one) => <Way from={one.from} to={one.to} /> },
    {
      id: "tx",
      title: t("statement.tx"),
      cell: (one) => (one.txHash === null ? null : <Address value={one.txHash} />),
    },
    {
      id: "amount",
      title: t("payments.amount"),
      atEnd: true,
      cell: (one) => (
        <>
          <Amount value={one.amount} token={one.token} />
          {one.fiatValue !== null && (
            <div className="muted">
              <Fiat value={one.fiatValue.usd} currency="usd" />
            </div>
          )}
        </>
      ),
    },
  ];
  return (
    <Section
      title={t("statement.title")}
      flush
      actions={
        <Button variant="default" size="compact-md" loading={download.isRunning} onClick={() => void download.run()}>
          {t("ui.csv")}
        </Button>
      }
    >
      {download.error !== null && <ErrorNote error={download.error} />}
      <div className="filters" role="search">
        <Select
          aria-label={t("payments.chain")}
          placeholder={t("payments.chain")}
          clearable
          data={chains.map((one) => ({ value: one.chain, label: one.name }))}
          value={chain ?? null}
          onChange={(value) => {
            search.filter({ chain: value ?? "" });
          }}
        />
      </div>
      <List
        label={t("statement.title")}
        columns={columns}
        query={query}
        rowKey={(one) => one.id}
        onPage={search.goTo}
        empty={t("statement.none")}
      />
    </Section>
  );
}

/** From one account of the merchant's books to another: null is outside. */
function Way({ from, to }: { readonly from: string | null; readonly to: string | null }) {
  const { t } = useTranslation();
  return (
    <span className="muted">
      {from === null ? t("statement.outside") : <Meaning of="balance" code={from} />} <Arrow />{" "}
      {to === null ? t("statement.outside") : <Meaning of="balance" code={to} />}
    </span>
  );
}
