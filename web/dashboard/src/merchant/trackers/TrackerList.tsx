import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { numbers } from "../../ui/format";
import { Url } from "../../ui/InPieces";
import type { Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { useListSearch } from "../../ui/search";
import { None } from "../../ui/None";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { usePermitted, useProjectId } from "../project";

import { trackersQuery, type Tracker } from "./queries";

/** Addresses of anybody's that the project watches, chain by chain. */
export function TrackerList() {
  const { t, i18n } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch([]);
  const query = useQuery(trackersQuery(projectId, search.page));
  const number = numbers(i18n.language);
  const columns: readonly Column<Tracker>[] = [
    { id: "name", title: t("projects.name"), cell: (one) => one.name },
    {
      id: "status",
      title: t("payments.status"),
      cell: (one) => <Status value={one.isActive ? "active" : "inactive"} />,
    },
    { id: "chain", title: t("payments.chain"), cell: (one) => <ChainName of={one.chain} /> },
    {
      id: "history",
      title: t("tracker.past"),
      cell: (one) => (one.history === null ? <None /> : <Status value={one.history.state} />),
    },
    { id: "url", title: t("webhooks.url"), isWide: true, cell: (one) => <Url value={one.url} /> },
    {
      id: "addresses",
      title: t("tracker.addresses"),
      atEnd: true,
      cell: (one) => (
        <span className="number">
          {t("ui.of", { value: number.format(one.addresses), max: number.format(one.maxAddresses) })}
        </span>
      ),
    },
    { id: "created", title: t("payments.created"), cell: (one) => <When at={one.createdAt} /> },
  ];
  const create = usePermitted("trackers") && (
    <Button component={Link} to={`/${projectId}/trackers/new`}>
      {t("tracker.new")}
    </Button>
  );
  return (
    <ListPage
      title={t("tracker.title")}
      lead={t("tracker.lead")}
      search={search}
      create={create}
      columns={columns}
      query={query}
      rowKey={(one) => one.webhookId}
      href={(one) => `/${projectId}/trackers/${one.webhookId}`}
      none={t("tracker.none")}
      noneFiltered={t("tracker.none")}
    />
  );
}
