import type { ReactNode } from "react";

import { ErrorNote, Loading } from "./Feedback";

interface Query<Data> {
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
