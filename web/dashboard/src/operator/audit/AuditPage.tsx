import { keepPreviousData, useQuery } from "@tanstack/react-query";

import { CsvButton } from "../../ui/CsvButton";
import { Empty } from "../../ui/Feedback";
import { Filters, SelectFilter, TextFilter } from "../../ui/Filters";
import { List, listed, type Column } from "../../ui/List";
import { Page, Section } from "../../ui/Page";
import { newestFirst, useListSearch } from "../../ui/search";
import { Told } from "../../ui/Told";
import { When } from "../../ui/When";
import { api, operatorSession, unwrap, useWords, type Operations, type Schemas } from "../api";
import { ROWS } from "../queries";

type Entry = Schemas["TrailEntry"];
type Asked = NonNullable<Operations["listAuditEntries"]["parameters"]["query"]>;

const FILTERS = ["action", "actorKind", "actor", "merchant", "subject", "address", "sort"] as const;
const KINDS = ["merchant", "key", "tracker", "operator", "gateway", "stranger"] as const;
const TEXTS = ["actor", "merchant", "subject", "address", "action"] as const;

/** Who did what, from where, and when. Nothing is ever taken out of it. */
export function AuditPage() {
  const { t } = useWords();
  const search = useListSearch(FILTERS);
  const { filters } = search;
  const query = useQuery({
    queryKey: ["audit", filters, search.page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      // What stands in the address is checked by the API, which says what is wrong with it.
      const asked = { limit: ROWS, ...filters, page: search.page } as Asked;
      const answer = await unwrap(api.GET("/api/admin/audit", { params: { query: asked }, signal }));
      return listed(answer.entries, answer);
    },
  });
  const columns: readonly Column<Entry>[] = [
    { id: "at", title: t("audit.at"), sort: "createdAt", cell: (one) => <When at={one.createdAt} /> },
    {
      id: "action",
      title: t("audit.action"),
      cell: (one) => (
        <>
          <code>{one.action}</code> {one.count > 1 && <span className="number">× {one.count}</span>}
        </>
      ),
    },
    {
      id: "actor",
      title: t("audit.actor"),
      cell: (one) => (
        <>
          <div>{one.actorName ?? one.actor ?? "–"}</div>
          <div className="muted">{t(`actorKind.${one.actorKind}`)}</div>
        </>
      ),
    },
    { id: "from", title: t("audit.address"), cell: (one) => one.address ?? "–" },
    {
      id: "whose",
      title: t("record.merchant"),
      cell: (one) => (
        <>
          <div>{one.merchantName ?? one.merchantId ?? "–"}</div>
          <div className="muted">{one.projectName}</div>
        </>
      ),
    },
    {
      id: "subject",
      title: t("audit.subject"),
      cell: (one) => (one.subject === null ? "–" : <code>{one.subject}</code>),
    },
    { id: "details", title: t("audit.details"), cell: (one) => <Told details={one.details} /> },
  ];
  return (
    <Page
      title={t("nav.audit")}
      lead={t("audit.lead")}
      actions={<CsvButton path="/api/admin/audit" query={filters} name="audit" session={operatorSession} />}
    >
      <Section flush>
        <Filters>
          <SelectFilter
            label={t("audit.actorKind")}
            value={filters.actorKind}
            options={KINDS.map((one) => ({ value: one, label: t(`actorKind.${one}`) }))}
            onFilter={(actorKind) => {
              search.filter({ actorKind });
            }}
          />
          {TEXTS.map((name) => (
            <TextFilter
              key={name}
              label={t(`audit.by.${name}`)}
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
          rowKey={(one) => one.entryId}
          {...newestFirst(search)}
          onPage={search.goTo}
          empty={<Empty title={t("record.noneFiltered")} />}
        />
      </Section>
    </Page>
  );
}
