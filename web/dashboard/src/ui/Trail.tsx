/** The audit log as both apps show it: of one merchant, or of everybody. */
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";

import type { Session } from "../api/session";

import { ACTIONS } from "./actions";
import { CsvButton } from "./CsvButton";
import { timesOf } from "./days";
import { NoneListed } from "./Feedback";
import { DaysFilter, Filters, SelectFilter, TextFilter } from "./Filters";
import { Id } from "./Id";
import { List, type Column, type ListQuery } from "./List";
import { Meaning, useMeaning } from "./Meaning";
import { None } from "./None";
import { Page, Section } from "./Page";
import { newestFirst, type ListSearch } from "./search";
import { Told } from "./Told";
import { When } from "./When";

const KINDS = ["merchant", "key", "tracker", "operator", "gateway", "stranger"] as const;

interface Entry {
  readonly createdAt: string;
  readonly action: string;
  readonly count: number;
  readonly actorKind: (typeof KINDS)[number];
  readonly actor: string | null;
  readonly actorName: string | null;
  readonly address: string | null;
  readonly subject: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/** What is filtered by what one types, in this order. */
const TEXTS = ["actor", "subject", "address"] as const;

/** What stands in the address of a page that shows an audit log. */
export const TRAIL_FILTERS = ["actorKind", "action", ...TEXTS, "from", "until", "sort"] as const;
type Name = (typeof TRAIL_FILTERS)[number];

/** Return what the API is asked for by these filters: of days, the moments between which they are. */
export function askedOf({ from, until, ...filters }: Partial<Record<Name | "merchant", string>>) {
  return { ...filters, ...timesOf(from, until) };
}

interface TrailProps<One extends Entry> {
  readonly lead: string;
  /** Where the API lists it. */
  readonly path: string;
  readonly session: Session;
  readonly search: ListSearch<Name>;
  /** What else it is filtered by. */
  readonly filters?: ReactNode;
  readonly query: ListQuery<One>;
  /** What says whose an entry is. */
  readonly whose: Column<One>;
  readonly rowKey: (one: One) => string;
  /** What is said where none is like what the filters ask for. */
  readonly noneFiltered: string;
  /** Return the page of what an entry is about, by its id, where it has one. */
  readonly pageOf?: (id: string, entry: One) => string | undefined;
  /** What stands above the list. */
  readonly head?: ReactNode;
}

export function Trail<One extends Entry>(props: TrailProps<One>) {
  const { search } = props;
  const { filters } = search;
  const { t, i18n } = useTranslation();
  const meaning = useMeaning();
  const actions = ACTIONS.map((one) => ({ value: one, label: meaning("action", one) })).sort((one, other) =>
    one.label.localeCompare(other.label, i18n.language),
  );
  const columns: readonly Column<One>[] = [
    { id: "at", title: t("trail.at"), sort: "createdAt", cell: (one) => <When at={one.createdAt} /> },
    {
      id: "action",
      title: t("trail.action"),
      cell: (one) => (
        <>
          <div>
            <Meaning of="action" code={one.action} />
            {one.count > 1 && <span className="number"> × {one.count}</span>}
          </div>
          <code className="muted">{one.action}</code>
        </>
      ),
    },
    {
      id: "actor",
      title: t("trail.actor"),
      cell: (one) => (
        <>
          <div>{one.actorName ?? one.actor ?? <None />}</div>
          <div className="muted">
            {t(`trail.kinds.${one.actorKind}`)}
            {one.address !== null && (
              <>
                {" · "}
                <bdi dir="ltr">{one.address}</bdi>
              </>
            )}
          </div>
        </>
      ),
    },
    props.whose,
    {
      id: "subject",
      title: t("trail.subject"),
      cell: (one) =>
        one.subject === null ? <None /> : <Id value={one.subject} page={props.pageOf?.(one.subject, one)} />,
    },
    { id: "details", title: t("trail.details"), cell: (one) => <Told details={one.details} /> },
  ];
  return (
    <Page
      title={t("nav.audit")}
      lead={props.lead}
      actions={<CsvButton path={props.path} query={askedOf(filters)} name="audit" session={props.session} />}
    >
      {props.head}
      <Section flush>
        <Filters>
          <SelectFilter
            label={t("trail.actorKind")}
            value={filters.actorKind}
            options={KINDS.map((one) => ({ value: one, label: t(`trail.kinds.${one}`) }))}
            onFilter={search.set.actorKind}
          />
          <SelectFilter
            label={t("trail.action")}
            value={filters.action}
            options={actions}
            onFilter={search.set.action}
          />
          {props.filters}
          {TEXTS.map((name) => (
            <TextFilter key={name} label={t(`trail.by.${name}`)} value={filters[name]} onFilter={search.set[name]} />
          ))}
          <DaysFilter from={filters.from} until={filters.until} onFilter={search.filter} />
        </Filters>
        <List
          label={t("nav.audit")}
          columns={columns}
          query={props.query}
          rowKey={props.rowKey}
          {...newestFirst(search)}
          onPage={search.goTo}
          isFiltered={search.isFiltered}
          empty={<NoneListed search={search} filtered={props.noneFiltered} title={t("trail.none")} />}
        />
      </Section>
    </Page>
  );
}
