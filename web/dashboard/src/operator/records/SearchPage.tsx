import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { Empty } from "../../ui/Feedback";
import { Filters, TextFilter } from "../../ui/Filters";
import { None } from "../../ui/None";
import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { api, unwrap, useWords } from "../api";
import { MerchantLink } from "../merchants/MerchantLink";

import { pageOf } from "./found";

/** What a text names: an id, an address, a transaction, an order, an e-mail. */
export function SearchPage() {
  const { t } = useWords();
  const search = useListSearch(["q"]);
  const q = search.filters.q ?? "";
  const query = useQuery({
    queryKey: ["search", q],
    enabled: q !== "",
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET("/api/admin/search", { params: { query: { q } }, signal }))).found,
  });
  return (
    <Page title={t("nav.search")} lead={t("search.lead")}>
      <Section flush>
        <Filters>
          <TextFilter label={t("search.text")} value={search.filters.q} onFilter={search.set.q} />
        </Filters>
        {q === "" ? (
          <Empty title={t("search.nothingYet")} />
        ) : (
          <QueryView query={query}>
            {(found) =>
              found.length === 0 ? (
                <Empty title={t("search.none")} />
              ) : (
                <Plain
                  label={t("nav.search")}
                  rows={found}
                  rowKey={(one) => `${one.kind} ${one.id}`}
                  columns={[
                    { id: "id", title: t("search.found"), cell: (one) => <Link {...pageOf(one)}>{one.id}</Link> },
                    { id: "kind", title: t("record.kind"), cell: (one) => t(`kinds.${one.kind}`) },
                    {
                      id: "merchant",
                      title: t("record.merchant"),
                      cell: (one) => <MerchantLink of={one} none={<None />} />,
                    },
                    {
                      id: "status",
                      title: t("record.status"),
                      cell: (one) => (one.status === null ? <None /> : <Status value={one.status} />),
                    },
                    { id: "created", title: t("common:payments.created"), cell: (one) => <When at={one.createdAt} /> },
                  ]}
                />
              )
            }
          </QueryView>
        )}
      </Section>
    </Page>
  );
}
