/** What is shown of one row of a batch before it is sent. */
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { hasParticulars } from "../../ui/Feedback";
import { None } from "../../ui/None";
import { Said } from "../../ui/Said";
import { Chip } from "../../ui/Status";
import type { Schemas } from "../queries";

import styles from "./RowCells.module.css";
import { destinationOf, type PayoutRow } from "./rows";

/** What of a row has to be mended, by this page or by the API; nothing where it is no one field. */
export function wrongOf({ problem }: PayoutRow, refusal: Schemas["Rejected"] | undefined): string | null {
  if (problem === "address") return "toAddress";
  if (problem === "amount" || problem === "decimals") return "amount";
  return refusal?.field ?? null;
}

/** Where a row stands in what was typed. */
export function Line({ number }: { readonly number: number }) {
  const { t } = useTranslation();
  return (
    <span className={styles.line} data-word={t("batch.line")}>
      {number}
    </span>
  );
}

interface ToProps {
  readonly row: PayoutRow;
  /** It is what has to be mended. */
  readonly isWrong: boolean;
}

/** To whom; whole where something is wrong with it. What is no address has no ends that people compare. */
export function To({ row, isWrong }: ToProps) {
  const { t } = useTranslation();
  const { toAddress, tag, problem } = row;
  if (destinationOf(row) === "") return <None />;
  if (problem === "address") return <bdi className="secret">{destinationOf(row)}</bdi>;
  return (
    <>
      <Address value={toAddress} whole={isWrong} />
      {tag !== undefined && (
        <>
          {" "}
          <span className="muted">{t("payout.tag")}:</span> <code>{tag}</code>
        </>
      )}
    </>
  );
}

/** A field of a row. What is wrong with it stands beside. */
export function Marked({ isWrong, children }: { readonly isWrong: boolean; readonly children: ReactNode }) {
  return isWrong ? <mark className="wrong">{children}</mark> : children;
}

interface JudgementProps {
  readonly row: PayoutRow;
  readonly isTwiceMeant: boolean;
  /** The API has looked at the rows as they are. */
  readonly isChecked: boolean;
  readonly refusal: Schemas["Rejected"] | undefined;
}

/** What is wrong with a row, in the page's words or in the API's. */
export function Judgement({ row, isTwiceMeant, isChecked, refusal }: JudgementProps) {
  const { t } = useTranslation();
  if (row.problem !== null) return <Chip tone="bad">{t(`batch.problem.${row.problem}`)}</Chip>;
  if (row.isTwice && !isTwiceMeant) return <Chip tone="bad">{t("batch.problem.twice")}</Chip>;
  if (!isChecked) return <Chip tone="calm">{t("batch.unchecked")}</Chip>;
  if (refusal === undefined) return <Chip tone="good">{t("batch.good")}</Chip>;
  return (
    <>
      <Chip tone="bad">{t("batch.refused")}</Chip>{" "}
      <Said of="errors" code={refusal.code} words={refusal.error} withOwn={hasParticulars(refusal.code)} />{" "}
      <code className="muted">{refusal.code}</code>
    </>
  );
}
