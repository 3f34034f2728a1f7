import type { ReactNode } from "react";

import { NoneListed } from "./Feedback";
import { Filters } from "./Filters";
import { List, type ListProps } from "./List";
import { Page, Section } from "./Page";
import type { ListSearch } from "./search";

interface ListPageProps<Row> extends Omit<ListProps<Row>, "label" | "onPage" | "empty" | "isFiltered"> {
  readonly title: string;
  readonly lead?: string;
  readonly search: Pick<ListSearch<never>, "isFiltered" | "clear" | "goTo">;
  readonly filters?: ReactNode;
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
  const { title, lead, search, filters, csv, acts, create, none, noneWords, noneFiltered, ...rest } = props;
  const { head, foot, listTitle, listActions, ...list } = rest;
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
        {filters !== undefined && <Filters>{filters}</Filters>}
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
      </Section>
      {foot}
    </Page>
  );
}
