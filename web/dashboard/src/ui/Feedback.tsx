import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { asApiError, type ApiError } from "../api/errors";

import styles from "./Feedback.module.css";
import { Quoted, Said, useSentence } from "./Said";
import { SecondFactorOff } from "./SecondFactorOff";

/** Codes whose sentences name an amount, a limit, a reason or an id, which another language's sentence does not. */
const WITH_PARTICULARS: ReadonlySet<string> = new Set([
  "AMOUNT_TOO_LARGE",
  "AUTO_CONVERT_CIRCLE",
  "BAD_REQUEST",
  "CHAIN_NOT_CHANGEABLE",
  "EXCHANGE_AMOUNT_TOO_HIGH",
  "EXCHANGE_AMOUNT_TOO_LOW",
  "EXCHANGE_REFUSED",
  "FEE_NOT_RAISABLE",
  "INTERNAL_ERROR",
  "INVALID_AMOUNT",
  "INVALID_ENDPOINT",
  "LAST_ENDPOINT",
  "MONEY_SET_ASIDE",
  "NOT_CANCELLABLE",
  "NOT_RESOLVABLE",
  "PAYOUT_BELOW_MINIMUM",
  "PAYOUT_LIMIT_EXCEEDED",
  "PLAN_LIMIT",
  "REFUND_EXCEEDS_HELD",
  "RESCAN_RUNNING",
  "ROLE_NOT_ALLOWED",
  "SCOPE_MISSING",
  "STAKE_OUT_OF_RANGE",
  "TOO_MANY_APPROVED_ADDRESSES",
  "TOO_MANY_ENDPOINTS",
  "TOO_MANY_PLANS",
  "TOO_MANY_TOKENS",
]);

/** What a proxy says that stands before a gateway, while that is being started or takes too long. */
const OF_A_PROXY: Readonly<Record<string, string>> = {
  HTTP_502: "UNAVAILABLE",
  HTTP_503: "UNAVAILABLE",
  HTTP_504: "TIMEOUT",
};

/** What is not there does not come by being asked for once more. */
const NOT_FOUND = 404;

/** From so many seconds on, a wait is told in minutes. */
const MINUTES_FROM_S = 120;

/** Say whether the API's own sentence for a code tells more than another language's can. */
export function hasParticulars(code: string): boolean {
  return WITH_PARTICULARS.has(code);
}

/** Say whether an act was refused as there is no second factor to show. At signing in, the same codes ask for one. */
function isSecondFactorOff({ status, code }: ApiError): boolean {
  return status === 403 && (code === "TWO_FACTOR_REQUIRED" || code === "TWO_FACTOR_NOT_ENROLLED");
}

interface ErrorNoteProps {
  readonly error: unknown;
  readonly onRetry?: (() => void) | undefined;
}

/** What went wrong, in the user's language where there is a sentence for it, with the code of the API. */
export function ErrorNote({ error, onRetry }: ErrorNoteProps) {
  const { t, i18n } = useTranslation();
  const found = asApiError(error);
  const key = `errors.${OF_A_PROXY[found.code] ?? found.code}`;
  const hasSentence = useSentence()("errors", found.code) !== undefined || i18n.exists(key);
  // Of one wrong field, the API's sentence is its name and what is wrong with it, which stand below.
  const isToldBelow = !hasSentence && found.details.some((one) => `${one.field} ${one.message}` === found.message);
  return (
    <div role="alert" className={styles.error}>
      {!isToldBelow && (
        <p>
          {isSecondFactorOff(found) ? (
            <SecondFactorOff />
          ) : i18n.exists(key) ? (
            t(key as "errors.OFFLINE")
          ) : (
            <Said of="errors" code={found.code} words={found.message} withOwn={hasParticulars(found.code)} />
          )}
        </p>
      )}
      {found.details.length > 0 && (
        <ul>
          {found.details.map((one) => (
            <li key={`${one.field} ${one.message}`}>
              <code>{one.field}</code> <Quoted words={one.message} />
            </li>
          ))}
        </ul>
      )}
      <div className="row">
        <code className="muted">{found.code}</code>
        {found.retryAfterS !== null && (
          <span>
            {found.retryAfterS < MINUTES_FROM_S
              ? t("ui.retryAfter", { count: found.retryAfterS })
              : t("ui.retryAfterMinutes", { count: Math.ceil(found.retryAfterS / 60) })}
          </span>
        )}
        {onRetry !== undefined && found.status !== NOT_FOUND && (
          <Button size="compact-sm" variant="default" onClick={onRetry}>
            {t("ui.retry")}
          </Button>
        )}
      </div>
    </div>
  );
}

interface EmptyProps {
  readonly title: string;
  readonly children?: ReactNode;
}

/** Nothing to show yet, and what to do about it. */
export function Empty({ title, children }: EmptyProps) {
  return (
    <div className={styles.empty}>
      <p className={styles.emptyTitle}>{title}</p>
      {children}
    </div>
  );
}

interface NoneListedProps extends EmptyProps {
  readonly search: { readonly isFiltered: boolean; readonly clear: () => void };
  /** What is said where nothing is like what the filters ask for. */
  readonly filtered: string;
}

/** A list without a row: there is nothing, or nothing like the filters, with a way to all there is. */
export function NoneListed({ search, filtered, title, children }: NoneListedProps) {
  const { t } = useTranslation();
  if (!search.isFiltered) return <Empty title={title}>{children}</Empty>;
  return (
    <Empty title={filtered}>
      <Button variant="default" onClick={search.clear}>
        {t("list.clear")}
      </Button>
    </Empty>
  );
}

/** Room for what is on its way, as large as it will be, so that nothing jumps when it comes. */
export function Loading({ lines = 3 }: { readonly lines?: number }) {
  const { t } = useTranslation();
  return (
    <div role="status" aria-label={t("ui.loading")} className={styles.loading}>
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} className={styles.line} />
      ))}
    </div>
  );
}
