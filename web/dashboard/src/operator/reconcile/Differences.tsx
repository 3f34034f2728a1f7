import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { ChainName, useChainName } from "../../ui/ChainName";
import { CsvButton } from "../../ui/CsvButton";
import { NoneListed } from "../../ui/Feedback";
import { None } from "../../ui/None";
import { showList } from "../../ui/format";
import { Filters, SelectFilter, TextFilter } from "../../ui/Filters";
import { List, listed, type Column } from "../../ui/List";
import { Meaning, useMeaning } from "../../ui/Meaning";
import { Section } from "../../ui/Page";
import { Quoted } from "../../ui/Said";
import { beginsWith, useListSearch } from "../../ui/search";
import { api, operatorSession, unwrap, useWords, type Operations, type Schemas } from "../api";
import { ChainFilter } from "../chains/ChainFilter";
import { MerchantLink } from "../merchants/MerchantLink";
import { MerchantFilter } from "../merchants/MerchantSelect";
import { ROWS, usePermitted } from "../queries";

import styles from "./Differences.module.css";

type Difference = Schemas["Difference"];
type Asked = NonNullable<Operations["listReconcileDifferences"]["parameters"]["query"]>;

const FILTERS = ["chain", "token", "group", "merchantId", "sort"] as const;
const BY_CHAIN = "chain";
const GROUPS = ["deposits", "wallet", "gas", "between_chains"] as const;
const POLL_MS = 3_000;

interface DifferencesProps {
  readonly run: Pick<Schemas["ReconcileRun"], "jobId" | "finishedAt" | "chains">;
}

/** What differs in a run, with what could explain each. */
export function Differences({ run: { jobId, finishedAt, chains } }: DifferencesProps) {
  const { t, i18n } = useWords();
  const chainName = useChainName();
  const allRead = chains.every(({ problem }) => problem === null) ? "noDifferences" : "noneRead";
  const none = finishedAt === null ? "noneYet" : allRead;
  const cut = chains.filter((one) => one.differences > one.listed).map((one) => chainName(one.chain));
  const meaning = useMeaning();
  const search = useListSearch(FILTERS);
  const { filters } = search;
  const query = useQuery({
    // What a run has found is all there is once it has ended, and is asked for once more then.
    queryKey: ["job", "reconcile", "differences", jobId, finishedAt !== null, filters, search.page],
    placeholderData: keepPreviousData,
    refetchInterval: finishedAt === null ? POLL_MS : false,
    queryFn: async ({ signal }) => {
      const asked = { limit: ROWS, ...filters, page: search.page } as Asked; // the API checks it
      const params = { path: { jobId }, query: asked };
      const answer = await unwrap(api.GET("/api/admin/reconcile/{jobId}/differences", { params, signal }));
      return listed(answer.differences, answer);
    },
  });
  const columns: readonly Column<Difference>[] = [
    { id: "chain", title: t("record.chain"), sort: "chain", cell: (one) => <Where of={one} /> },
    { id: "merchant", title: t("record.merchant"), cell: (one) => <MerchantLink of={one} /> },
    {
      id: "difference",
      title: t("reconcile.difference"),
      atEnd: true,
      cell: (one) => (
        <b>
          <Amount value={one.difference} token={one.token} />
        </b>
      ),
    },
    amount("onChain", t("reconcile.onChain")),
    amount("booked", t("reconcile.booked")),
    amount("inTransit", t("reconcile.inTransit")),
    { id: "why", title: t("record.why"), isWide: true, cell: (one) => <Why of={one} /> },
  ];
  return (
    <Section
      title={t("reconcile.differences")}
      flush
      actions={
        <CsvButton
          path={`/api/admin/reconcile/${jobId}/differences`}
          query={filters}
          name="differences"
          session={operatorSession}
        />
      }
    >
      {cut.length > 0 && <p className="inset">{t("reconcile.cut", { chains: showList(cut, i18n.language) })}</p>}
      <Filters>
        <ChainFilter value={filters.chain} onFilter={search.set.chain} />
        <TextFilter label={t("common:payments.token")} value={filters.token} onFilter={search.set.token} />
        <SelectFilter
          label={t("reconcile.addresses")}
          value={filters.group}
          options={GROUPS.map((one) => ({ value: one, label: meaning("group", one) }))}
          onFilter={search.set.group}
        />
        <MerchantFilter value={filters.merchantId} onFilter={search.set.merchantId} />
      </Filters>
      <List
        label={t("reconcile.differences")}
        columns={columns}
        query={query}
        rowKey={(one) => [one.chain, one.merchantId, one.group, one.token, one.contractAddress].join(" ")}
        onPage={search.goTo}
        isFiltered={search.isFiltered}
        {...beginsWith(BY_CHAIN, search)}
        empty={<NoneListed search={search} filtered={t("record.noneFiltered")} title={t(`reconcile.${none}`)} />}
      />
    </Section>
  );
}

/** At which addresses of which chain, whose blocks are read again on its page. */
function Where({ of: { chain, group } }: { readonly of: Difference }) {
  const name = (
    <span className="oneLine">
      <ChainName of={chain} />
    </span>
  );
  return (
    <>
      {usePermitted("chains.read") ? <Link to={`/chains/${chain}`}>{name}</Link> : name}
      <br />
      <span className="muted">
        <Meaning of="group" code={group} />
      </span>
    </>
  );
}

function amount(name: "onChain" | "booked" | "inTransit", title: string): Column<Difference> {
  return { id: name, title, atEnd: true, cell: (one) => <Amount value={one[name]} /> };
}

/** What could explain it, the likeliest first, and the addresses that do not hold what they should. */
function Why({ of: { explanations, addresses } }: { readonly of: Difference }) {
  if (explanations.length === 0 && addresses.length === 0) return <None />;
  return (
    <div className={styles.parts}>
      {explanations.length > 0 && (
        <ul className={styles.why}>
          {explanations.map((words) => (
            <li key={words}>
              <Quoted words={words} />
            </li>
          ))}
        </ul>
      )}
      {addresses.length > 0 && <WhichAddresses of={addresses} />}
    </div>
  );
}

function WhichAddresses({ of }: { readonly of: Difference["addresses"] }) {
  const { t } = useWords();
  return (
    <details>
      <summary>{t("reconcile.whichAddresses")}</summary>
      <ul className={styles.why}>
        {of.map((one) => (
          <li key={one.address}>
            <Address value={one.address} />
            <br />
            {t("reconcile.onChain")} <Amount value={one.onChain} /> · {t("reconcile.expected")}{" "}
            <Amount value={one.expected} />
          </li>
        ))}
      </ul>
    </details>
  );
}
