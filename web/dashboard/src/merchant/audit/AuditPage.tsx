import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import type { operations } from "../../api/generated/dashboard";
import { listed } from "../../ui/List";
import { None } from "../../ui/None";
import { Page } from "../../ui/Page";
import { useListSearch } from "../../ui/search";
import { askedOf, Trail, TRAIL_FILTERS } from "../../ui/Trail";
import { pageOfId } from "../about";
import { api, merchantSession, unwrap } from "../api";
import { Permitted } from "../Permitted";
import { usePermitted } from "../project";
import { ROWS } from "../queries";

type Asked = NonNullable<operations["listOwnAuditEntries"]["parameters"]["query"]>;

const PATH = "/api/dashboard/audit";

/** Who did what for the merchant, or was refused, in all projects. Nothing is ever taken out of it. */
export function AuditPage() {
  const { t } = useTranslation();
  return usePermitted("audit.read") ? (
    <Log />
  ) : (
    <Page title={t("nav.audit")}>
      <Permitted to="audit.read">{null}</Permitted>
    </Page>
  );
}

function Log() {
  const { t } = useTranslation();
  const search = useListSearch(TRAIL_FILTERS);
  const { filters } = search;
  const query = useQuery({
    queryKey: ["audit", filters, search.page],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      // What stands in the address is checked by the API, which says what is wrong with it.
      const asked = { limit: ROWS, ...askedOf(filters), page: search.page } as Asked;
      const answer = await unwrap(api.GET(PATH, { params: { query: asked }, signal }));
      return listed(answer.entries, answer);
    },
  });
  return (
    <Trail
      lead={t("trail.lead")}
      path={PATH}
      session={merchantSession}
      search={search}
      query={query}
      whose={{
        id: "project",
        title: t("trail.project"),
        cell: (one) => one.projectName ?? one.projectId ?? <None />,
      }}
      rowKey={(one) => `${one.createdAt} ${one.action} ${one.actor ?? ""} ${one.subject ?? ""}`}
      pageOf={(id, one) => pageOfId(one.projectId, id)}
      noneFiltered={t("trail.noneFiltered")}
    />
  );
}
