import type { ReactNode } from "react";

import { ErrorNote, Loading } from "./Feedback";
import { Page } from "./Page";

/** The part of a TanStack query that is shown. */
export interface Query<Data> {
  readonly data: Data | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

interface QueryViewProps<Data> {
  readonly query: Query<Data>;
  readonly lines?: number;
  readonly children: (data: Data) => ReactNode;
}

/** What a query answered; room for it while it loads; and what went wrong, beside what was there before. */
export function QueryView<Data>({ query, lines = 4, children }: QueryViewProps<Data>) {
  const note = query.error === null ? null : <ErrorNote error={query.error} onRetry={() => void query.refetch()} />;
  if (query.data === undefined) return note ?? <Loading lines={lines} />;
  return (
    <>
      {note}
      {children(query.data)}
    </>
  );
}

interface QueryPageProps<Data> extends QueryViewProps<Data> {
  /** What the page is called until it is known what it shows. */
  readonly title: string;
}

/** A page that shows what a query answered. It has its heading also while that is on its way, and where it failed. */
export function QueryPage<Data>({ title, query, lines = 8, children }: QueryPageProps<Data>) {
  const view = (
    <QueryView query={query} lines={lines}>
      {children}
    </QueryView>
  );
  return query.data === undefined ? <Page title={title}>{view}</Page> : view;
}
