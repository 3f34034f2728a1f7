/** Leads from what names something to the page of it. */
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { Id } from "../ui/Id";
import { None } from "../ui/None";
import { shortId } from "../ui/format";

import { useProjectId } from "./project";

/** What has a page: where those pages are, and what one of them is called. */
const PAGES = {
  payment: ["payments", "payment.title"],
  payout: ["payouts", "payout.title"],
  withdrawal: ["withdrawals", "withdrawal.one"],
  refund: ["refunds", "refund.one"],
  exchange: ["exchanges", "exchange.one"],
  account: ["accounts", "account.one"],
} as const;

type Kind = keyof typeof PAGES;

/** How the ids of what has a page begin, and where those pages are in a project. */
const PLACES: ReadonlyMap<string, string> = new Map([
  ["pay", PAGES.payment[0]],
  ["po", PAGES.payout[0]],
  ["wd", PAGES.withdrawal[0]],
  ["ref", PAGES.refund[0]],
  ["xch", PAGES.exchange[0]],
  ["acc", PAGES.account[0]],
  ["evt", "events"],
  ["dlv", "webhooks"],
  ["whe", "webhooks/endpoints"],
  ["whk", "trackers"],
]);

/** Return the page of the thing with an id in a project; undefined where it has none. */
export function pageOfId(projectId: string | null, id: string): string | undefined {
  const place = PLACES.get(id.split("_", 1)[0] ?? "");
  return projectId === null || place === undefined ? undefined : `/${projectId}/${place}/${id}`;
}

function hasPage(kind: string): kind is Kind {
  return kind in PAGES;
}

/** What a webhook's body says of what it is about. Of a deposit it names what that came to. */
interface Told {
  readonly resource?: string;
  readonly paymentId?: string;
  readonly accountId?: string;
}

function toldBy(payload: unknown): Told {
  const data: unknown = payload !== null && typeof payload === "object" && "data" in payload ? payload.data : null;
  return data !== null && typeof data === "object" ? data : {};
}

interface AboutProps {
  /** The event's body. */
  readonly payload: unknown;
  /** What kind of thing it is about, where that is known beside the body. */
  readonly kind?: string;
  readonly resourceId: string;
}

/** What an event is about, as a link to its page; a deposit leads to its payment or its account. */
export function About({ payload, kind, resourceId }: AboutProps) {
  const { resource = kind ?? "", paymentId, accountId } = toldBy(payload);
  if (hasPage(resource)) return <Whole kind={resource} id={resourceId} />;
  if (resource === "deposit" && paymentId !== undefined) return <Whole kind="payment" id={paymentId} />;
  if (resource === "account_deposit" && accountId !== undefined) return <Whole kind="account" id={accountId} />;
  return <code>{resourceId}</code>;
}

function Whole({ kind, id }: { readonly kind: Kind; readonly id: string }) {
  const projectId = useProjectId();
  return (
    <Link to={`/${projectId}/${PAGES[kind][0]}/${id}`}>
      <code>{id}</code>
    </Link>
  );
}

interface BelongsToProps {
  /** The first of these that is known is what it belongs to. */
  readonly of: readonly (readonly [Kind, string | null | undefined])[];
  /** What is shown where none is: of a deposit of nobody's. */
  readonly otherwise?: string | null | undefined;
}

/** What something belongs to, in words and short, as a link. */
export function BelongsTo({ of, otherwise = null }: BelongsToProps) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  for (const [kind, id] of of) {
    if (id === null || id === undefined) continue;
    const [page, name] = PAGES[kind];
    return (
      <Link to={`/${projectId}/${page}/${id}`}>
        {t(name)} <code>{shortId(id)}</code>
      </Link>
    );
  }
  return otherwise === null ? <None /> : <Id value={otherwise} />;
}
