import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { ChainName, useChainName } from "../../ui/ChainName";
import { timesOf } from "../../ui/days";
import { NoneListed } from "../../ui/Feedback";
import { DaysFilter, Filters, SelectFilter } from "../../ui/Filters";
import { Id } from "../../ui/Id";
import { List, type Column } from "../../ui/List";
import { Meter } from "../../ui/Meter";
import { showAmount, showList, showMonth } from "../../ui/format";
import { chosenOf } from "../../ui/options";
import { None } from "../../ui/None";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { useListSearch } from "../../ui/search";
import { When } from "../../ui/When";
import { pageOfId } from "../about";
import { ProjectCsv } from "../ProjectCsv";
import { useIsOnlyOne, useProjectId } from "../project";
import { projectsQuery, type Schemas } from "../queries";

import { Costs } from "./Costs";
import { Count } from "./Count";
import { planQuery, usageQuery, type Entry, type Usage } from "./queries";

const OPERATIONS = [
  "payment",
  "payout",
  "refund",
  "withdrawal",
  "collection",
  "swap",
  "bridge",
  "webhook_delivery",
  "api_method",
  "tracker",
  "return",
] as const;
const FILTERS = ["operation", "from", "until"] as const;

/** What the plan allows, how much of it is used, and what each credit went for. */
export function UsagePage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const isOnlyOne = useIsOnlyOne();
  const search = useListSearch(FILTERS);
  const { operation, from, until } = search.filters;
  const asked = { ...chosenOf("operation", OPERATIONS, operation), ...timesOf(from, until) };
  const plan = useQuery(planQuery(projectId));
  const usage = useQuery(usageQuery(projectId, { page: search.page, ...asked }));
  const { data: open } = useSuspenseQuery(projectsQuery);
  const nameOf = (id: string | null) => open.find((one) => one.projectId === id)?.name;
  // Of an account it names the chain besides, and of what was given back what it went for.
  const pageOf = ({ projectId: id, reference }: Entry) =>
    nameOf(id) === undefined ? undefined : pageOfId(id, reference.split(":").find((part) => part.includes("_")) ?? "");
  const columns: readonly Column<Entry>[] = [
    { id: "when", title: t("statement.when"), cell: (one) => <When at={one.createdAt} /> },
    { id: "operation", title: t("usage.for"), cell: (one) => t(`usage.operations.${one.operation}`) },
    {
      id: "chain",
      title: t("payments.chain"),
      cell: (one) => (one.chain === null ? <None /> : <ChainName of={one.chain} />),
    },
    {
      id: "reference",
      title: t("usage.reference"),
      cell: (one) => <Id value={one.reference} page={pageOf(one)} />,
    },
    // What the merchant has is of all its projects: one that is not open to the reader keeps its name to itself.
    ...(isOnlyOne
      ? []
      : [{ id: "project", title: t("usage.project"), cell: (one: Entry) => nameOf(one.projectId) ?? <None /> }]),
    { id: "amount", title: t("usage.credits"), atEnd: true, cell: (one) => <Count value={one.amount} /> },
  ];
  return (
    <Page title={t("usage.title")} lead={t("usage.lead")}>
      <Section title={t("usage.plan")}>
        <QueryView query={plan}>{(own) => <Plan own={own} />}</QueryView>
      </Section>
      {usage.data !== undefined && (
        <Section title={t("usage.left")}>
          <Left credit={usage.data.credit} />
        </Section>
      )}
      <Section title={t("usage.list")} flush actions={<ProjectCsv list="usage" query={asked} />}>
        <Filters>
          <SelectFilter
            label={t("usage.for")}
            value={operation}
            options={OPERATIONS.map((one) => ({ value: one, label: t(`usage.operations.${one}`) }))}
            onFilter={search.set.operation}
          />
          <DaysFilter from={from} until={until} onFilter={search.filter} />
        </Filters>
        <List
          label={t("usage.list")}
          columns={columns}
          query={usage}
          rowKey={(one) => `${one.operation} ${one.reference} ${one.createdAt}`}
          onPage={search.goTo}
          isFiltered={search.isFiltered}
          empty={<NoneListed search={search} filtered={t("usage.noneFiltered")} title={t("usage.none")} />}
        />
      </Section>
      <Costs />
    </Page>
  );
}

function Plan({ own: { plan, used } }: { readonly own: Schemas["OwnPlan"] }) {
  const { t, i18n } = useTranslation();
  const chainName = useChainName();
  const count = (value: number | null, none: string) => (value === null ? none : <Count value={value} />);
  return (
    <div className="stack">
      <Facts
        facts={[
          [t("usage.plan"), <b key="name">{plan.name}</b>],
          [
            t("usage.price"),
            plan.priceUsd === null ? null : t("usage.perMonth", { usd: showAmount(plan.priceUsd, i18n.language).text }),
          ],
          [t("usage.requests"), count(plan.requestsPerMinute, t("usage.noLimit"))],
          [t("usage.trackers"), t(plan.hasTracker ? "usage.included" : "usage.notIncluded")],
          [
            t("usage.trackerChains"),
            plan.hasTracker
              ? plan.chains === null
                ? t("usage.everyChain")
                : showList(plan.chains.map(chainName), i18n.language)
              : null,
          ],
        ]}
      />
      {used.cptIncluded !== null && (
        <Meter
          label={t("usage.month", { month: showMonth(used.month, i18n.language) })}
          value={used.cpt}
          max={used.cptIncluded}
        />
      )}
      {used.cptIncluded === null && (
        <p>
          {t("usage.month", { month: showMonth(used.month, i18n.language) })}: <Count value={used.cpt} />
        </p>
      )}
      {plan.hasTracker && (
        <>
          <Meter label={t("usage.activeTrackers")} value={used.webhooks} max={plan.maxWebhooks} />
          <Meter label={t("usage.fullestTracker")} value={used.addressesMost} max={plan.maxAddresses} />
        </>
      )}
    </div>
  );
}

function Left({ credit }: { readonly credit: Usage["credit"] }) {
  const { t } = useTranslation();
  const isLow = credit.balance < credit.floor;
  return (
    <div className="stack">
      <Facts
        facts={[
          [t("usage.balance"), <Count key="balance" value={credit.balance} />],
          [t("usage.floor"), <Count key="floor" value={credit.floor} />],
        ]}
      />
      {isLow && <p role="alert">{t("usage.low")}</p>}
    </div>
  );
}
