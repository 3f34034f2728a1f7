import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { downloadCsv } from "../../api/download";
import { Address } from "../../ui/Address";
import { Amount, Fiat } from "../../ui/Amount";
import { Arrow } from "../../ui/Arrow";
import { timesOf } from "../../ui/days";
import { ErrorNote, NoneListed } from "../../ui/Feedback";
import { DaysFilter, Filters, SelectFilter } from "../../ui/Filters";
import { List, type Column } from "../../ui/List";
import { Meaning, useMeaning } from "../../ui/Meaning";
import { chosenOf } from "../../ui/options";
import { Section } from "../../ui/Page";
import { newestFirst, useListSearch } from "../../ui/search";
import { useAct } from "../../ui/useAct";
import { When } from "../../ui/When";
import { BelongsTo } from "../about";
import { merchantSession } from "../api";
import { useChainOptions } from "../project";
import type { Schemas } from "../queries";

import { statementQuery, useWalletTokens, WALLET_FILTERS } from "./queries";

type Movement = Schemas["TransactionView"];

const SORTS = ["-createdAt", "createdAt"] as const;
const TYPES = [
  "deposit",
  "allocation",
  "release",
  "reversal",
  "payout",
  "auto_payout",
  "refund",
  "withdrawal",
  "exchange",
  "restore",
  "adjustment",
] as const satisfies readonly Movement["type"][];

/** Every movement of the wallet, newest first, with what it belongs to; all of it as CSV. */
export function Statement({ projectId }: { readonly projectId: string }) {
  const { t } = useTranslation();
  const meaning = useMeaning();
  const search = useListSearch(WALLET_FILTERS);
  const { chain, token, type, from, until, sort } = search.filters;
  const chains = useChainOptions();
  const tokens = useWalletTokens(projectId);
  const asked = {
    ...(chain === undefined ? {} : { chain }),
    ...(token === undefined ? {} : { token }),
    ...chosenOf("type", TYPES, type),
    ...timesOf(from, until),
  };
  const query = useQuery(statementQuery(projectId, { page: search.page, ...asked, ...chosenOf("sort", SORTS, sort) }));
  const isFiltered = Object.keys(asked).length > 0;
  const download = useAct(() => {
    const wanted = new URLSearchParams(asked).toString();
    const path = `/api/dashboard/projects/${projectId}/wallet/transactions.csv`;
    return downloadCsv(wanted === "" ? path : `${path}?${wanted}`, "transactions.csv", merchantSession);
  });
  const columns: readonly Column<Movement>[] = [
    { id: "when", title: t("statement.when"), sort: "createdAt", cell: (one) => <When at={one.createdAt} /> },
    { id: "type", title: t("statement.type"), cell: (one) => <Meaning of="movement" code={one.type} /> },
    { id: "whose", title: t("resolutions.whose"), cell: (one) => <Whose movement={one} /> },
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
        <Button variant="default" loading={download.isRunning} onClick={() => void download.run()}>
          {t("ui.csv")}
        </Button>
      }
    >
      {download.error !== null && <ErrorNote error={download.error} />}
      <Filters label={t("statement.title")}>
        <SelectFilter label={t("payments.chain")} value={chain} options={chains} onFilter={search.set.chain} />
        <SelectFilter label={t("payments.token")} value={token} options={tokens} onFilter={search.set.token} />
        <SelectFilter
          label={t("statement.type")}
          value={type}
          options={TYPES.map((one) => ({ value: one, label: meaning("movement", one) }))}
          onFilter={search.set.type}
        />
        <DaysFilter from={from} until={until} onFilter={search.filter} />
      </Filters>
      <List
        label={t("statement.title")}
        columns={columns}
        query={query}
        rowKey={(one) => one.id}
        {...newestFirst(search)}
        onPage={search.goTo}
        isFiltered={isFiltered}
        empty={
          <NoneListed
            search={{
              isFiltered,
              clear: () => {
                search.filter({ chain: "", token: "", type: "", from: "", until: "" });
              },
            }}
            filtered={t("statement.noneFiltered")}
            title={t("statement.none")}
          />
        }
      />
    </Section>
  );
}

/** What it belongs to. A refund, payout or exchange says more than the payment that it is of. */
function Whose({ movement }: { readonly movement: Movement }) {
  const { refundId, payoutId, withdrawalId, txnId, paymentId, depositId } = movement;
  return (
    <BelongsTo
      of={[
        ["refund", refundId],
        ["payout", payoutId],
        ["withdrawal", withdrawalId],
        ["exchange", txnId],
        ["payment", paymentId],
      ]}
      otherwise={depositId}
    />
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
