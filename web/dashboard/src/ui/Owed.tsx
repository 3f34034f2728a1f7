import { Amount } from "./Amount";

interface OwedProps {
  /** As the API says it: below zero. */
  readonly receivable: string;
  readonly token?: string | undefined;
}

/** What a reorganization took back after it was spent, and deposits make up for first: how much, without a sign. */
export function Owed({ receivable, token }: OwedProps) {
  return (
    <b>
      <Amount value={receivable.replace("-", "")} token={token} />
    </b>
  );
}
