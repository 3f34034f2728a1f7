import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { ChainName } from "../../ui/ChainName";
import { Amount } from "../../ui/Amount";
import { CsvButton } from "../../ui/CsvButton";
import { SelectFilter } from "../../ui/Filters";
import { listed, type Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { Meaning, useMeaning } from "../../ui/Meaning";
import { useListSearch } from "../../ui/search";
import { When } from "../../ui/When";
import { api, operatorSession, unwrap, useWords, type Operations, type Schemas } from "../api";
import { ChainFilter } from "../chains/ChainFilter";
import { MerchantLink } from "../merchants/MerchantLink";
import { MerchantFilter } from "../merchants/MerchantSelect";
import { ROWS } from "../queries";

import { ResolutionActs } from "./ResolutionActs";

type Held = Schemas["OperatorResolution"];
type Asked = NonNullable<Operations["listAllResolutions"]["parameters"]["query"]>;

const FILTERS = ["reason", "chain", "mode", "merchantId"] as const;
const MODES = ["live", "sandbox"] as const;
const REASONS = [
  "surplus",
  "late",
  "wrong_token",
  "wrong_chain",
  "failed",
  "unexpected",
  "below_minimum",
] as const satisfies readonly Schemas["HeldReason"][];

/** Money that belongs to no order, of all merchants. Operators decide where a merchant asks them to. */
export function ResolutionsPage() {
  const meaning = useMeaning();
  const { t } = useWords();
  const search = useListSearch(FILTERS);
  const { filters } = search;
  const query = useQuery({
    queryKey: ["resolution", filters, search.page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const asked = { limit: ROWS, ...filters, page: search.page } as Asked; // the API checks it
      const answer = await unwrap(api.GET("/api/admin/resolutions", { params: { query: asked }, signal }));
      return listed(answer.resolutions, answer);
    },
  });
  const columns: readonly Column<Held>[] = [
    {
      id: "when",
      title: t("common:resolutions.came"),
      cell: (one) => <When at={one.deposit.minedAt} />,
    },
    { id: "merchant", title: t("record.merchant"), cell: (one) => <MerchantLink of={one} /> },
    { id: "mode", title: t("common:mode.title"), cell: (one) => t(`common:mode.${one.mode}`) },
    { id: "why", title: t("record.why"), cell: (one) => <Meaning of="held" code={one.deposit.reason} /> },
    { id: "chain", title: t("record.chain"), cell: (one) => <ChainName of={one.deposit.chain} /> },
    {
      id: "amount",
      title: t("record.held"),
      atEnd: true,
      cell: (one) => <Amount value={one.deposit.heldAmount} token={one.deposit.token} />,
    },
    { id: "acts", title: "", atEnd: true, cell: (one) => <ResolutionActs held={one} isRow /> },
  ];
  return (
    <ListPage
      title={t("nav.resolutions")}
      lead={t("resolutions.lead")}
      search={search}
      csv={<CsvButton path="/api/admin/resolutions" query={filters} name="resolutions" session={operatorSession} />}
      filters={
        <>
          <SelectFilter
            label={t("record.why")}
            value={filters.reason}
            options={REASONS.map((one) => ({ value: one, label: meaning("held", one) }))}
            onFilter={search.set.reason}
          />
          <ChainFilter value={filters.chain} onFilter={search.set.chain} />
          <SelectFilter
            label={t("common:mode.title")}
            value={filters.mode}
            options={MODES.map((one) => ({ value: one, label: t(`common:mode.${one}`) }))}
            onFilter={search.set.mode}
          />
          <MerchantFilter value={filters.merchantId} onFilter={search.set.merchantId} />
        </>
      }
      columns={columns}
      query={query}
      rowKey={(one) => one.deposit.depositId}
      href={(one) => `/resolutions/${one.deposit.depositId}`}
      none={t("common:resolutions.none")}
      noneFiltered={t("record.noneFiltered")}
    />
  );
}
