import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { ChainName } from "../../ui/ChainName";
import type { Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { Meaning } from "../../ui/Meaning";
import { useListSearch } from "../../ui/search";
import { When } from "../../ui/When";
import { ProjectCsv } from "../ProjectCsv";
import { useProjectId } from "../project";

import { resolutionsQuery, type Resolution } from "./queries";
import { ResolutionActs } from "./ResolutionActs";

/** Money that belongs to no order: it waits until somebody says what becomes of it. */
export function ResolutionsPage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch([]);
  const query = useQuery(resolutionsQuery(projectId, search.page));
  const columns: readonly Column<Resolution>[] = [
    { id: "when", title: t("resolutions.came"), cell: (one) => <When at={one.minedAt} /> },
    { id: "why", title: t("resolutions.why"), cell: (one) => <Meaning of="held" code={one.reason} /> },
    {
      id: "whose",
      title: t("resolutions.whose"),
      cell: (one) => one.orderId ?? one.paymentId ?? one.externalId ?? "–",
    },
    { id: "chain", title: t("payments.chain"), cell: (one) => <ChainName of={one.chain} /> },
    { id: "tx", title: t("statement.tx"), cell: (one) => <Address value={one.txHash} /> },
    {
      id: "amount",
      title: t("wallet.held"),
      atEnd: true,
      cell: (one) => <Amount value={one.heldAmount} token={one.token} />,
    },
    { id: "acts", title: "", atEnd: true, cell: (one) => <ResolutionActs projectId={projectId} resolution={one} /> },
  ];
  return (
    <ListPage
      title={t("resolutions.title")}
      lead={t("resolutions.lead")}
      search={search}
      csv={<ProjectCsv list="resolutions" query={search.filters} />}
      columns={columns}
      query={query}
      rowKey={(one) => one.depositId}
      none={t("resolutions.none")}
      noneFiltered={t("resolutions.none")}
    />
  );
}
