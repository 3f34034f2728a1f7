import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Amount, Fiat } from "../../ui/Amount";
import { CsvButton } from "../../ui/CsvButton";
import { SelectFilter, TextFilter } from "../../ui/Filters";
import { type Column } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { None } from "../../ui/None";
import { newestFirst, useListSearch } from "../../ui/search";
import { Text } from "../../ui/Text";
import { When } from "../../ui/When";
import { operatorSession, useWords } from "../api";
import { ChainFilter } from "../chains/ChainFilter";
import { MerchantLink } from "../merchants/MerchantLink";
import { MerchantFilter } from "../merchants/MerchantSelect";

import { uncollectedQuery, type Filters as Asked, type Uncollected } from "./queries";
import { Sums } from "./Sums";
import { REASONS, Why } from "./Why";

const PATH = "/api/admin/collections/uncollected";
const FILTERS = ["chain", "token", "reason", "merchantId", "sort"] as const;
const POLL_MS = 30_000;

/** Money on addresses that no collection takes to a main wallet yet: how much, where, and why. */
export function UncollectedPage() {
  const { t } = useWords();
  const search = useListSearch(FILTERS);
  const { filters } = search;
  // What stands in the address is checked by the API, which says what is wrong with it.
  const asked = { ...filters, page: search.page } as Asked;
  const query = useQuery({ ...uncollectedQuery(asked), refetchInterval: POLL_MS });
  const columns: readonly Column<Uncollected>[] = [
    {
      id: "since",
      title: t("uncollected.since"),
      sort: "createdAt",
      cell: (one) => <When at={one.createdAt} />,
    },
    { id: "merchant", title: t("record.merchant"), cell: (one) => <MerchantLink of={one} /> },
    { id: "chain", title: t("record.chain"), cell: (one) => <ChainName of={one.chain} /> },
    { id: "address", title: t("record.address"), cell: (one) => <Address value={one.address} /> },
    { id: "why", title: t("record.why"), cell: (one) => <Why of={one} /> },
    {
      id: "fee",
      title: t("uncollected.fee"),
      atEnd: true,
      cell: (one) => (one.feeUsd === null ? <None /> : <Fiat value={one.feeUsd} currency="usd" />),
    },
    {
      id: "amount",
      title: t("record.amount"),
      atEnd: true,
      cell: (one) => (
        <>
          <Amount value={one.amount} token={one.token} />
          {one.valueUsd !== null && (
            <div className="muted">
              <Fiat value={one.valueUsd} currency="usd" />
            </div>
          )}
        </>
      ),
    },
  ];
  return (
    <ListPage
      title={t("nav.uncollected")}
      lead={t("uncollected.lead")}
      search={search}
      csv={<CsvButton path={PATH} query={filters} name="uncollected" session={operatorSession} />}
      head={
        <Sums
          onShow={({ chain, token, reason }) => {
            search.filter({ chain, token, reason });
          }}
        />
      }
      listTitle={t("uncollected.list")}
      listActions={<FindAddress />}
      filters={
        <>
          <ChainFilter value={filters.chain} onFilter={search.set.chain} />
          <TextFilter label={t("common:payments.token")} value={filters.token} onFilter={search.set.token} />
          <SelectFilter
            label={t("record.why")}
            value={filters.reason}
            options={REASONS.map((one) => ({ value: one, label: t(`uncollected.reasons.${one}`) }))}
            onFilter={search.set.reason}
          />
          <MerchantFilter value={filters.merchantId} onFilter={search.set.merchantId} />
        </>
      }
      columns={columns}
      query={query}
      rowKey={(one) => one.uncollectedId}
      href={(one) => addressPage(one.address)}
      {...newestFirst(search)}
      none={t("uncollected.nothing")}
      noneFiltered={t("record.noneFiltered")}
    />
  );
}

function addressPage(address: string): string {
  return `/uncollected/${encodeURIComponent(address)}`;
}

/** Goes to any address, also one of which nothing is in the list. */
function FindAddress() {
  const { t } = useWords();
  const navigate = useNavigate();
  const [address, setAddress] = useState("");
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        void navigate({ to: addressPage(address.trim()) });
      }}
    >
      <Text
        aria-label={t("uncollected.anyAddress")}
        placeholder={t("uncollected.anyAddress")}
        required
        maxLength={128}
        pattern=".*\S.*"
        autoComplete="off"
        value={address}
        onText={setAddress}
      />
      <Button type="submit" variant="default">
        {t("uncollected.look")}
      </Button>
    </form>
  );
}
