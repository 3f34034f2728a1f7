import { useId, type ReactNode } from "react";

import { NoneListed } from "./Feedback";
import { Filters } from "./Filters";
import { List, type ListProps } from "./List";
import { Page, Section } from "./Page";
import { QuickTabs, type Quick } from "./QuickTabs";
import type { ListSearch } from "./search";

interface ListPageProps<Row> extends Omit<ListProps<Row>, "label" | "onPage" | "empty" | "isFiltered"> {
  readonly title: string;
  readonly lead?: string;
  readonly search: Pick<ListSearch<never>, "isFiltered" | "clear" | "goTo">;
  readonly filters?: ReactNode;
  /** What it is most often filtered by, as tabs above all filters. */
  readonly quick?: Quick;
  /** Saves what is listed. */
  readonly csv?: ReactNode;
  /** What else can be done with all of it. */
  readonly acts?: ReactNode;
  /** Makes one more; also offered where there is none. */
  readonly create?: ReactNode;
  /** What is said where there is none, and what more of it. */
  readonly none: string;
  readonly noneWords?: string;
  /** What is said where none is like what the filters ask for. */
  readonly noneFiltered: string;
  /** What stands above and below the list, on a page that shows more of the same. */
  readonly head?: ReactNode;
  readonly foot?: ReactNode;
  /** What the list itself is called there, and what can be done beside it. */
  readonly listTitle?: string;
  readonly listActions?: ReactNode;
}

/** A page that is one list: its filters, its file, and what there is to say and to do where it is empty. */
export function ListPage<Row>(props: ListPageProps<Row>) {
  const { title, lead, search, filters, quick, csv, acts, create, none, noneWords, noneFiltered, ...rest } = props;
  const { head, foot, listTitle, listActions, ...list } = rest;
  const panelId = useId();
  const shown = (
    <List
      {...list}
      label={listTitle ?? title}
      onPage={search.goTo}
      isFiltered={search.isFiltered}
      empty={
        <NoneListed search={search} filtered={noneFiltered} title={none}>
          {noneWords !== undefined && <p>{noneWords}</p>}
          {create}
        </NoneListed>
      }
    />
  );
  return (
    <Page
      title={title}
      lead={lead}
      actions={
        <>
          {csv}
          {acts}
          {create}
        </>
      }
    >
      {head}
      <Section flush {...(listTitle === undefined ? {} : { title: listTitle })} actions={listActions}>
        {quick !== undefined && <QuickTabs {...quick} panelId={panelId} />}
        {filters !== undefined && <Filters>{filters}</Filters>}
        {quick === undefined ? (
          shown
        ) : (
          <div id={panelId} role="tabpanel" aria-label={title}>
            {shown}
          </div>
        )}
      </Section>
      {foot}
    </Page>
  );
}
