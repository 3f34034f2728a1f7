import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { useChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { SelectFilter, TextFilter } from "../../ui/Filters";
import { showList } from "../../ui/format";
import type { Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { chosenOf } from "../../ui/options";
import { newestFirst, useListSearch } from "../../ui/search";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { ProjectCsv } from "../ProjectCsv";
import { usePermitted, useProjectId } from "../project";

import { NewAccount } from "./NewAccount";
import { accountsQuery, type Account } from "./queries";

const FILTERS = ["externalId", "isActive", "sort"] as const;
const SORTS = ["-createdAt", "createdAt", "externalId", "-externalId"] as const;

/** End users with addresses of their own, newest first. */
export function AccountList() {
  const { t, i18n } = useTranslation();
  const chainName = useChainName();
  const projectId = useProjectId();
  const search = useListSearch(FILTERS);
  const { externalId, isActive, sort } = search.filters;
  const [isAdding, setAdding] = useState(false);
  const query = useQuery(
    accountsQuery(projectId, {
      page: search.page,
      ...(externalId === undefined ? {} : { externalId }),
      ...(isActive === "true" || isActive === "false" ? { isActive: isActive === "true" } : {}),
      ...chosenOf("sort", SORTS, sort),
    }),
  );
  const columns: readonly Column<Account>[] = [
    { id: "user", title: t("account.user"), sort: "externalId", cell: (one) => one.externalId },
    {
      id: "status",
      title: t("payments.status"),
      cell: (one) => <Status value={one.isActive ? "active" : "inactive"} />,
    },
    { id: "addresses", title: t("account.addresses"), cell: (one) => <Addresses account={one} /> },
    {
      id: "chains",
      title: t("account.chains"),
      cell: (one) =>
        showList(
          one.addresses.map(({ chain }) => chainName(chain)),
          i18n.language,
        ),
    },
    { id: "created", title: t("payments.created"), sort: "createdAt", cell: (one) => <When at={one.createdAt} /> },
  ];
  const create = usePermitted("accounts") && (
    <Button
      onClick={() => {
        setAdding(true);
      }}
    >
      {t("account.new")}
    </Button>
  );
  return (
    <>
      <ListPage
        title={t("account.title")}
        lead={t("account.lead")}
        search={search}
        filters={
          <>
            <TextFilter label={t("account.search")} value={externalId} onFilter={search.set.externalId} />
            <SelectFilter
              label={t("payments.status")}
              value={isActive}
              options={[
                { value: "true", label: t("status.active") },
                { value: "false", label: t("status.inactive") },
              ]}
              onFilter={search.set.isActive}
            />
          </>
        }
        csv={<ProjectCsv list="accounts" query={search.filters} />}
        create={create}
        columns={columns}
        query={query}
        rowKey={(one) => one.accountId}
        href={(one) => `/${projectId}/accounts/${one.accountId}`}
        {...newestFirst(search)}
        none={t("account.none")}
        noneFiltered={t("account.noneFiltered")}
      />
      {isAdding && (
        <NewAccount
          onClose={() => {
            setAdding(false);
          }}
        />
      )}
    </>
  );
}

/** Each address once: chains of one family share it. */
function Addresses({ account }: { readonly account: Account }) {
  const addresses = [...new Set(account.addresses.map((one) => one.address))];
  return addresses.map((one) => (
    <div key={one}>
      <Address value={one} />
    </div>
  ));
}
