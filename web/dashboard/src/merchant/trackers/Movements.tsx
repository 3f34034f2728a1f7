import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { NoneListed } from "../../ui/Feedback";
import { Filters, SelectFilter } from "../../ui/Filters";
import { List, type Column } from "../../ui/List";
import { chosenOf } from "../../ui/options";
import { Section } from "../../ui/Page";
import { useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { useProjectId } from "../project";

import { movementsQuery, type Movement, type Tracker } from "./queries";
import { TokenCsv } from "./TokenCsv";

const STATUSES = ["detected", "confirmed", "orphaned"] as const;
const DIRECTIONS = ["in", "out"] as const;
const FILTERS = ["status", "direction"] as const;

interface MovementsProps {
  readonly tracker: Tracker;
  readonly token: string;
}

/** What moved at the watched addresses, newest first, each with its deliveries. */
export function Movements({ tracker, token }: MovementsProps) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch(FILTERS);
  const { status, direction } = search.filters;
  const query = useQuery(
    movementsQuery(projectId, tracker.webhookId, token, {
      page: search.page,
      ...chosenOf("status", STATUSES, status),
      ...chosenOf("direction", DIRECTIONS, direction),
    }),
  );
  const isEmpty = !search.isFiltered && (query.data?.total ?? tracker.addresses) === 0;
  const columns: readonly Column<Movement>[] = [
    { id: "when", title: t("statement.when"), cell: (one) => <When at={one.blockTime} /> },
    { id: "status", title: t("payments.status"), cell: (one) => <Status value={one.status} /> },
    { id: "direction", title: t("tracker.direction"), cell: (one) => t(`tracker.directions.${one.direction}`) },
    { id: "address", title: t("payment.address"), cell: (one) => <Address value={one.address} /> },
    { id: "tx", title: t("statement.tx"), cell: (one) => <Address value={one.txHash} /> },
    {
      id: "amount",
      title: t("payments.amount"),
      atEnd: true,
      cell: (one) => <Amount value={one.amount} token={one.token} />,
    },
    {
      id: "told",
      title: t("webhooks.log"),
      cell: (one) => (
        <Link to={`/${projectId}/webhooks`} search={{ resourceId: one.transactionId }}>
          {t("tracker.told")}
        </Link>
      ),
    },
  ];
  return (
    <Section
      title={t("tracker.movements")}
      flush
      actions={!isEmpty && <TokenCsv list="transaction" query={search.filters} name="movements" token={token} />}
    >
      {!isEmpty && (
        <Filters label={t("tracker.movements")}>
          <SelectFilter
            label={t("payments.status")}
            value={status}
            options={STATUSES.map((one) => ({ value: one, label: t(`status.${one}`) }))}
            onFilter={search.set.status}
          />
          <SelectFilter
            label={t("tracker.direction")}
            value={direction}
            options={DIRECTIONS.map((one) => ({ value: one, label: t(`tracker.directions.${one}`) }))}
            onFilter={search.set.direction}
          />
        </Filters>
      )}
      <List
        label={t("tracker.movements")}
        columns={columns}
        query={query}
        rowKey={(one) => one.transactionId}
        onPage={search.goTo}
        isFiltered={search.isFiltered}
        empty={<NoneListed search={search} filtered={t("statement.noneFiltered")} title={t("tracker.noMovements")} />}
      />
    </Section>
  );
}
