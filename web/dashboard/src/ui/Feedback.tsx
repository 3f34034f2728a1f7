import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { asApiError } from "../api/errors";

import styles from "./Feedback.module.css";

interface ErrorNoteProps {
  readonly error: unknown;
  readonly onRetry?: (() => void) | undefined;
}

/** What went wrong, in the user's language where there is a sentence for it, with the code of the API. */
export function ErrorNote({ error, onRetry }: ErrorNoteProps) {
  const { t, i18n } = useTranslation();
  const found = asApiError(error);
  const key = `errors.${found.code}`;
  const words = i18n.exists(key) ? t(key as "errors.OFFLINE") : found.message;
  return (
    <div role="alert" className={styles.error}>
      <p>{words}</p>
      {found.details.length > 0 && (
        <ul>
          {found.details.map((one) => (
            <li key={`${one.field} ${one.message}`}>
              <code>{one.field}</code> {one.message}
            </li>
          ))}
        </ul>
      )}
      <div className="row">
        <code className="muted">{found.code}</code>
        {found.retryAfterS !== null && <span>{t("ui.retryAfter", { count: found.retryAfterS })}</span>}
        {onRetry !== undefined && (
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
