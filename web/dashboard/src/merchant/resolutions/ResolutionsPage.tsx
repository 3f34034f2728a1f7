import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { ChainName } from "../../ui/ChainName";
import { timesOf } from "../../ui/days";
import { DaysFilter, SelectFilter } from "../../ui/Filters";
import type { Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { Meaning, useMeaning } from "../../ui/Meaning";
import { chosenOf } from "../../ui/options";
import { useListSearch } from "../../ui/search";
import { None } from "../../ui/None";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { BelongsTo } from "../about";
import { ProjectCsv } from "../ProjectCsv";
import { useChainOptions, useProjectId } from "../project";

import { resolutionsQuery, type Resolution } from "./queries";
import { ResolutionActs } from "./ResolutionActs";

const FILTERS = ["reason", "chain", "from", "until"] as const;
const REASONS = [
  "surplus",
  "late",
  "wrong_token",
  "wrong_chain",
  "failed",
  "unexpected",
  "below_minimum",
] as const satisfies readonly Resolution["reason"][];

/** Money that belongs to no order: it waits until somebody says what becomes of it. */
export function ResolutionsPage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const meaning = useMeaning();
  const search = useListSearch(FILTERS);
  const { reason, chain, from, until } = search.filters;
  const chains = useChainOptions();
  const asked = {
    ...chosenOf("reason", REASONS, reason),
    ...(chain === undefined ? {} : { chain }),
    ...timesOf(from, until),
  };
  const query = useQuery(resolutionsQuery(projectId, { page: search.page, ...asked }));
  const columns: readonly Column<Resolution>[] = [
    { id: "when", title: t("resolutions.came"), cell: (one) => <When at={one.minedAt} /> },
    { id: "why", title: t("resolutions.why"), cell: (one) => <Meaning of="held" code={one.reason} /> },
    {
      id: "whose",
      title: t("resolutions.whose"),
      cell: (one) => <Whose resolution={one} />,
    },
    {
      id: "sender",
      title: t("resolutions.sender"),
      cell: (one) => (one.fromAddress === null ? <None /> : <Address value={one.fromAddress} />),
    },
    { id: "tx", title: t("statement.tx"), cell: (one) => <Address value={one.txHash} /> },
    {
      id: "amount",
      title: t("wallet.held"),
      atEnd: true,
      cell: (one) => (
        <>
          <Amount value={one.heldAmount} token={one.token} />
          <div className="muted">
            <ChainName of={one.chain} />
          </div>
        </>
      ),
    },
    { id: "acts", title: "", atEnd: true, cell: (one) => <ResolutionActs projectId={projectId} resolution={one} /> },
  ];
  return (
    <ListPage
      title={t("resolutions.title")}
      lead={t("resolutions.lead")}
      search={search}
      filters={
        <>
          <SelectFilter
            label={t("resolutions.why")}
            value={reason}
            options={REASONS.map((one) => ({ value: one, label: meaning("held", one) }))}
            onFilter={search.set.reason}
          />
          <SelectFilter label={t("payments.chain")} value={chain} options={chains} onFilter={search.set.chain} />
          <DaysFilter from={from} until={until} onFilter={search.filter} />
        </>
      }
      csv={<ProjectCsv list="resolutions" query={asked} />}
      columns={columns}
      query={query}
      rowKey={(one) => one.depositId}
      none={t("resolutions.none")}
      noneFiltered={t("resolutions.noneFiltered")}
    />
  );
}

/** The payment or account that it came to, by what the merchant calls it, and where that payment stands. */
function Whose({ resolution }: { readonly resolution: Resolution }) {
  const { paymentId, paymentStatus, orderId, accountId, externalId } = resolution;
  const name = orderId ?? externalId;
  return (
    <span className="row">
      <BelongsTo
        of={[
          ["payment", paymentId],
          ["account", accountId],
        ]}
      />
      {paymentStatus !== null && <Status value={paymentStatus} />}
      {name !== null && <span className="muted">{name}</span>}
    </span>
  );
}
