import { Button, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { Empty } from "../../ui/Feedback";
import { List, type Column } from "../../ui/List";
import { chosenOf } from "../../ui/options";
import { Page, Section } from "../../ui/Page";
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
    { id: "chain", title: t("payments.chain"), cell: (one) => one.chain },
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
    <Page
      title={t("payouts.title")}
      actions={
        <>
          <ProjectCsv list="wallet/payouts" query={search.filters} />
          {create}
        </>
      }
    >
      <Section flush>
        <div className="filters" role="search">
          <Select
            aria-label={t("payments.status")}
            placeholder={t("payments.status")}
            clearable
            data={PAYOUT_STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) }))}
            value={status ?? null}
            onChange={(value) => {
              search.filter({ status: value ?? "" });
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
        </div>
        <List
          label={t("payouts.title")}
          columns={columns}
          query={query}
          rowKey={(one) => one.payoutId}
          href={(one) => `/${projectId}/payouts/${one.payoutId}`}
          onPage={search.goTo}
          empty={
            <Empty title={t(Object.keys(search.filters).length > 0 ? "payouts.noneFiltered" : "payouts.none")}>
              {create}
            </Empty>
          }
        />
      </Section>
    </Page>
  );
}
