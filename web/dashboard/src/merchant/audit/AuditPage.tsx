import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import type { operations } from "../../api/generated/dashboard";
import { CsvButton } from "../../ui/CsvButton";
import { Filters, SelectFilter, TextFilter } from "../../ui/Filters";
import { List, listed, type Column } from "../../ui/List";
import { Page, Section } from "../../ui/Page";
import { newestFirst, useListSearch } from "../../ui/search";
import { Told } from "../../ui/Told";
import { When } from "../../ui/When";
import { api, merchantSession, unwrap } from "../api";
import { ROWS, type Schemas } from "../queries";

type Entry = Schemas["OwnTrailEntry"];
type Asked = NonNullable<operations["listOwnAuditEntries"]["parameters"]["query"]>;

const FILTERS = ["action", "actorKind", "actor", "subject", "address", "sort"] as const;
const KINDS = ["merchant", "key", "tracker", "operator", "gateway", "stranger"] as const;
const TEXTS = ["actor", "subject", "address", "action"] as const;

/** Who did what for the merchant, or was refused, in all projects. Nothing is ever taken out of it. */
export function AuditPage() {
  const { t } = useTranslation();
  const search = useListSearch(FILTERS);
  const { filters } = search;
  const query = useQuery({
    queryKey: ["audit", filters, search.page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      // What stands in the address is checked by the API, which says what is wrong with it.
      const asked = { limit: ROWS, ...filters, page: search.page } as Asked;
      const answer = await unwrap(api.GET("/api/dashboard/audit", { params: { query: asked }, signal }));
      return listed(answer.entries, answer);
    },
  });
  const isFiltered = FILTERS.some((name) => name !== "sort" && filters[name] !== undefined);
  const columns: readonly Column<Entry>[] = [
    { id: "at", title: t("trail.at"), sort: "createdAt", cell: (one) => <When at={one.createdAt} /> },
    {
      id: "action",
      title: t("trail.action"),
      cell: (one) => (
        <>
          <code>{one.action}</code> {one.count > 1 && <span className="number">× {one.count}</span>}
        </>
      ),
    },
    {
      id: "actor",
      title: t("trail.actor"),
      cell: (one) => (
        <>
          <div>{one.actorName ?? one.actor ?? "–"}</div>
          <div className="muted">{t(`trail.kinds.${one.actorKind}`)}</div>
        </>
      ),
    },
    { id: "from", title: t("trail.address"), cell: (one) => one.address ?? "–" },
    { id: "project", title: t("trail.project"), cell: (one) => one.projectName ?? one.projectId ?? "–" },
    {
      id: "subject",
      title: t("trail.subject"),
      cell: (one) => (one.subject === null ? "–" : <code>{one.subject}</code>),
    },
    { id: "details", title: t("trail.details"), cell: (one) => <Told details={one.details} /> },
  ];
  return (
    <Page
      title={t("nav.audit")}
      lead={t("trail.lead")}
      actions={<CsvButton path="/api/dashboard/audit" query={filters} name="audit" session={merchantSession} />}
    >
      <Section flush>
        <Filters>
          <SelectFilter
            label={t("trail.actorKind")}
            value={filters.actorKind}
            options={KINDS.map((one) => ({ value: one, label: t(`trail.kinds.${one}`) }))}
            onFilter={(actorKind) => {
              search.filter({ actorKind });
            }}
          />
          {TEXTS.map((name) => (
            <TextFilter
              key={name}
              label={t(`trail.by.${name}`)}
              value={filters[name]}
              onFilter={(text) => {
                search.filter({ [name]: text });
              }}
            />
          ))}
        </Filters>
        <List
          label={t("nav.audit")}
          columns={columns}
          query={query}
          rowKey={(one) => `${one.createdAt} ${one.action} ${one.actor ?? ""} ${one.subject ?? ""}`}
          {...newestFirst(search)}
          onPage={search.goTo}
          empty={t(isFiltered ? "trail.noneFiltered" : "trail.none")}
        />
      </Section>
    </Page>
  );
}
