import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Amount, Fiat } from "../../ui/Amount";
import { timesOf } from "../../ui/days";
import { NoneListed } from "../../ui/Feedback";
import { DaysFilter, Filters, SelectFilter } from "../../ui/Filters";
import { List, type Column } from "../../ui/List";
import { Meaning } from "../../ui/Meaning";
import { chosenOf } from "../../ui/options";
import { Section } from "../../ui/Page";
import { newestFirst, useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { useCoinChains, useCoinTokens } from "../coins/queries";
import { ProjectCsv } from "../ProjectCsv";
import { useProjectId } from "../project";
import { Decision } from "../resolutions/Decision";

import { accountDepositsQuery, type AccountDeposit } from "./queries";

const STATUSES = ["detected", "confirmed", "orphaned"] as const;
const FILTERS = ["status", "chain", "token", "from", "until", "sort"] as const;
const SORTS = ["-createdAt", "createdAt"] as const;

/** What came to an end user's addresses, newest first. */
export function AccountDeposits({ accountId }: { readonly accountId: string }) {
  const { t } = useTranslation();
  const search = useListSearch(FILTERS);
  const { status, chain, token, from, until, sort } = search.filters;
  const chains = useCoinChains();
  const projectId = useProjectId();
  const tokens = useCoinTokens();
  const asked = {
    ...chosenOf("status", STATUSES, status),
    ...(chain === undefined ? {} : { chain }),
    ...(token === undefined ? {} : { token }),
    ...timesOf(from, until),
    ...chosenOf("sort", SORTS, sort),
  };
  const query = useQuery(accountDepositsQuery(projectId, accountId, { page: search.page, ...asked }));
  const columns: readonly Column<AccountDeposit>[] = [
    { id: "seen", title: t("resolutions.came"), sort: "createdAt", cell: (one) => <When at={one.seenAt} /> },
    { id: "status", title: t("payments.status"), cell: (one) => <How deposit={one} /> },
    { id: "chain", title: t("payments.chain"), cell: (one) => <ChainName of={one.chain} /> },
    { id: "tx", title: t("statement.tx"), cell: (one) => <Address value={one.txHash} /> },
    { id: "amount", title: t("payments.amount"), atEnd: true, cell: (one) => <HowMuch deposit={one} /> },
  ];
  return (
    <Section
      title={t("payment.deposits")}
      flush
      actions={<ProjectCsv list={`accounts/${accountId}/deposits`} query={asked} />}
    >
      <Filters>
        <SelectFilter
          label={t("payments.status")}
          value={status}
          options={STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) }))}
          onFilter={search.set.status}
        />
        <SelectFilter label={t("payments.chain")} value={chain} options={chains} onFilter={search.set.chain} />
        <SelectFilter label={t("payments.token")} value={token} options={tokens} onFilter={search.set.token} />
        <DaysFilter from={from} until={until} onFilter={search.filter} />
      </Filters>
      <List
        label={t("payment.deposits")}
        columns={columns}
        query={query}
        rowKey={(one) => one.depositId}
        {...newestFirst(search)}
        onPage={search.goTo}
        isFiltered={search.isFiltered}
        empty={
          <NoneListed search={search} filtered={t("account.noDepositsFiltered")} title={t("account.noDeposits")} />
        }
      />
    </Section>
  );
}

function How({ deposit }: { readonly deposit: AccountDeposit }) {
  const { t } = useTranslation();
  const { confirmations: count, requiredConfirmations: required } = deposit;
  return (
    <>
      <Status value={deposit.status} />
      {deposit.status === "detected" && (
        <div className="muted number">{t("payment.confirmed", { count, required })}</div>
      )}
      {!deposit.counted && deposit.heldReason !== null && (
        <div className="muted">
          {deposit.resolution === null ? t("account.held") : <Meaning of="resolution" code={deposit.resolution} />} ·{" "}
          <Meaning of="held" code={deposit.heldReason} />{" "}
          {deposit.resolution !== null && <Decision depositId={deposit.depositId} />}
        </div>
      )}
    </>
  );
}

function HowMuch({ deposit }: { readonly deposit: AccountDeposit }) {
  // In the currency in which the wallet's statement says it.
  const fiat = deposit.fiat.find(({ currency }) => currency.toLowerCase() === "usd") ?? deposit.fiat[0];
  return (
    <>
      <Amount value={deposit.amount} token={deposit.token} />
      {fiat !== undefined && (
        <div className="muted">
          <Fiat value={fiat.amount} currency={fiat.currency} />
        </div>
      )}
    </>
  );
}
