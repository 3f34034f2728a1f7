import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { SelectFilter } from "../../ui/Filters";
import { type Column } from "../../ui/List";
import { chosenOf } from "../../ui/options";
import { ListPage } from "../../ui/ListPage";
import { useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { ProjectCsv } from "../ProjectCsv";
import { usePermitted, useProjectId } from "../project";

import { PAYOUT_STATUSES, payoutsQuery, type Payout } from "./queries";

const FILTERS = ["status", "batchId"] as const;

/** A project's payouts, newest first. */
export function PayoutList() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch(FILTERS);
  const { status, batchId } = search.filters;
  const query = useQuery(
    payoutsQuery(projectId, {
      page: search.page,
      ...chosenOf("status", PAYOUT_STATUSES, status),
      ...(batchId === undefined ? {} : { batchId }),
    }),
  );
  const columns: readonly Column<Payout>[] = [
    { id: "created", title: t("payments.created"), cell: (one) => <When at={one.createdAt} /> },
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
  const create = usePermitted("payouts") && (
    <Button component={Link} to={`/${projectId}/payouts/new`}>
      {t("payouts.new")}
    </Button>
  );
  return (
    <ListPage
      title={t("payouts.title")}
      search={search}
      filters={
        <>
          <SelectFilter
            label={t("payments.status")}
            value={status}
            options={PAYOUT_STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) }))}
            onFilter={(chosen) => {
              search.filter({ status: chosen });
            }}
          />
          {batchId !== undefined && (
            <Button
              variant="default"
              onClick={() => {
                search.filter({ batchId: "" });
              }}
            >
              {t("payouts.notOneBatch")}
            </Button>
          )}
        </>
      }
      csv={<ProjectCsv list="wallet/payouts" query={search.filters} />}
      create={create}
      columns={columns}
      query={query}
      rowKey={(one) => one.payoutId}
      href={(one) => `/${projectId}/payouts/${one.payoutId}`}
      none={t("payouts.none")}
      noneFiltered={t("payouts.noneFiltered")}
    />
  );
}
