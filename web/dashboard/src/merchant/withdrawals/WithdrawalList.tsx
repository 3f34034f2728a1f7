import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { CsvButton } from "../../ui/CsvButton";
import { timesOf } from "../../ui/days";
import { DaysFilter, SelectFilter } from "../../ui/Filters";
import { type Column } from "../../ui/List";
import { chosenOf } from "../../ui/options";
import { ListPage } from "../../ui/ListPage";
import { newestFirst, useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { merchantSession } from "../api";
import { PAYOUT_STATUSES } from "../payouts/queries";
import { usePermitted, useProjectId } from "../project";

import { withdrawalsQuery, type Withdrawal } from "./queries";

const FILTERS = ["status", "from", "until", "sort"] as const;
const SORTS = ["-createdAt", "createdAt"] as const;

/** What was taken out of the wallet in person, newest first. */
export function WithdrawalList() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch(FILTERS);
  const { status, from, until, sort } = search.filters;
  const asked = {
    ...chosenOf("status", PAYOUT_STATUSES, status),
    ...timesOf(from, until),
    ...chosenOf("sort", SORTS, sort),
  };
  const query = useQuery(withdrawalsQuery(projectId, { page: search.page, ...asked }));
  const columns: readonly Column<Withdrawal>[] = [
    { id: "created", title: t("payments.created"), sort: "createdAt", cell: (one) => <When at={one.createdAt} /> },
    { id: "status", title: t("payments.status"), cell: (one) => <Status value={one.status} /> },
    { id: "to", title: t("payouts.to"), cell: (one) => <Address value={one.toAddress} /> },
    { id: "chain", title: t("payments.chain"), cell: (one) => <ChainName of={one.chain} /> },
    {
      id: "amount",
      title: t("payments.amount"),
      atEnd: true,
      cell: (one) => <Amount value={one.amount} token={one.token} />,
    },
  ];
  const create = usePermitted("withdrawals") && (
    <Button component={Link} to={`/${projectId}/withdrawals/new`}>
      {t("withdrawal.new")}
    </Button>
  );
  return (
    <ListPage
      title={t("withdrawal.title")}
      lead={t("withdrawal.lead")}
      search={search}
      filters={
        <>
          <SelectFilter
            label={t("payments.status")}
            value={status}
            options={PAYOUT_STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) }))}
            onFilter={search.set.status}
          />
          <DaysFilter from={from} until={until} onFilter={search.filter} />
        </>
      }
      csv={
        <CsvButton
          path="/api/dashboard/withdrawals"
          query={{ projectId, ...asked }}
          name="withdrawals"
          session={merchantSession}
        />
      }
      create={create}
      columns={columns}
      query={query}
      rowKey={(one) => one.withdrawalId}
      href={(one) => `/${projectId}/withdrawals/${one.withdrawalId}`}
      {...newestFirst(search)}
      none={t("withdrawal.none")}
      noneFiltered={t("withdrawal.noneFiltered")}
    />
  );
}
