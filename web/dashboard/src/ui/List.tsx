import { Button } from "@mantine/core";
import { memo, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { Empty, ErrorNote, Loading } from "./Feedback";
import { numbers } from "./format";
import styles from "./List.module.css";
import { RowLink } from "./RowLink";
import { useLate } from "./useLate";

export interface Column<Row> {
  readonly id: string;
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  /** On phones it has the whole width to itself: a name with some sentences. */
  readonly isWide?: boolean;
  /** On phones it stands beside the first column, without its title. One that says how a row stands does. */
  readonly isBesideFirst?: boolean;
  /** Numbers stand at the end of their cell. */
  readonly atEnd?: boolean;
  /** The list can be sorted by it: the name that the API has for that. */
  readonly sort?: string;
}

export interface Listed<Row> {
  readonly rows: readonly Row[];
  readonly page: number;
  readonly limit: number;
  readonly total: number;
  /** Whether there are just so many; otherwise there are as many at least. */
  readonly isExact: boolean;
  readonly hasNext: boolean;
}

interface ListAnswer {
  readonly page: number;
  readonly limit: number;
  readonly total: number;
  readonly totalIsExact?: boolean;
  readonly nextCursor?: string | null;
}

/** Pages by number reach so far and no further. */
const PAGED_MAX = 10_000;

/** Return what a list of the API's answered, as a list shows it. */
export function listed<Row>(rows: readonly Row[], answer: ListAnswer): Listed<Row> {
  const { page, limit, total, totalIsExact = true, nextCursor = null } = answer;
  const isReached = (page + 1) * limit <= PAGED_MAX;
  return {
    rows,
    page,
    limit,
    total,
    isExact: totalIsExact,
    hasNext: totalIsExact ? page * limit < total : nextCursor !== null && isReached,
  };
}

/** The part of a TanStack query that a list shows. */
export interface ListQuery<Row> {
  readonly data: Listed<Row> | undefined;
  readonly error: unknown;
  readonly isPlaceholderData: boolean;
  readonly refetch: () => unknown;
}

export interface ListProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly query: ListQuery<Row>;
  readonly rowKey: (row: Row) => string;
  /** Where a row leads to. */
  readonly href?: (row: Row) => string;
  readonly empty: ReactNode;
  /** Whether anything is left out, which `empty` then says: of other filters that may hold as well. */
  readonly isFiltered?: boolean;
  readonly sort?: string | undefined;
  readonly onSort?: (sort: string) => void;
  readonly onPage: (page: number) => void;
}

/**
 * One page of a list. The API filters, sorts and pages; this shows what it answered. On phones rows are cards: the first
 * column is a card's heading, with its status beside it, and the others stand below with their titles.
 */
export function List<Row>(props: ListProps<Row>) {
  const { query, label, columns, empty, isFiltered = false } = props;
  const isLate = useLate(query.isPlaceholderData);
  const note = query.error !== null && (
    <div className={styles.note}>
      <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
    </div>
  );
  if (query.data === undefined) return note || <Loading lines={8} />;
  const { rows } = query.data;
  // That there was nothing before does not say that there is nothing now.
  if (rows.length === 0 && note) return note;
  // Of a page behind the last one, that says nothing: the list was longer, or fewer filters were set.
  if (rows.length === 0 && query.data.page <= 1) {
    if (query.isPlaceholderData && (isLate || !isFiltered)) return <Loading lines={8} />;
    return typeof empty === "string" ? <Empty title={empty} /> : empty;
  }
  return (
    <>
      {note}
      <div className={styles.scroll}>
        <table className={styles.table} aria-label={label} aria-busy={query.isPlaceholderData}>
          <thead>
            <tr>
              {columns.map((column) => (
                <Heading key={column.id} column={column} sort={props.sort} onSort={props.onSort} />
              ))}
            </tr>
          </thead>
          <tbody data-late={isLate}>
            {rows.map((row) => (
              <Row key={props.rowKey(row)} row={row} columns={columns} href={props.href?.(row)} />
            ))}
          </tbody>
        </table>
      </div>
      <Paging label={label} of={query.data} onPage={props.onPage} />
    </>
  );
}

interface HeadingProps<Row> {
  readonly column: Column<Row>;
  readonly sort: string | undefined;
  readonly onSort: ((sort: string) => void) | undefined;
}

function Heading<Row>({ column, sort, onSort }: HeadingProps<Row>) {
  const by = column.sort;
  if (by === undefined || onSort === undefined) {
    return (
      <th scope="col" data-end={column.atEnd}>
        <Title of={column.title} />
      </th>
    );
  }
  const isDown = sort === `-${by}`;
  const isUp = sort === by;
  return (
    <th scope="col" data-end={column.atEnd} aria-sort={isDown ? "descending" : isUp ? "ascending" : "none"}>
      <button
        type="button"
        className={styles.sort}
        onClick={() => {
          onSort(isDown ? by : `-${by}`);
        }}
      >
        {column.title}
        <span aria-hidden>{isDown ? "↓" : isUp ? "↑" : "↕"}</span>
      </button>
    </th>
  );
}

/** A column's title. One of buttons has none to be seen. */
export function Title({ of }: { readonly of: string }) {
  const { t } = useTranslation();
  return of === "" ? <span className="unseen">{t("list.acts")}</span> : of;
}

interface RowProps<Row> {
  readonly row: Row;
  readonly columns: readonly Column<Row>[];
  readonly href: string | undefined;
}

function RowShown<Row>({ row, columns, href }: RowProps<Row>) {
  return (
    <tr className={href === undefined ? undefined : styles.link}>
      {columns.map((column, index) => (
        <Cell key={column.id} column={column} row={row} href={index === 0 ? href : undefined} />
      ))}
    </tr>
  );
}

/** Columns that say how a row stands. */
const STATUSES = ["status", "state"];

interface CellProps<Row> {
  readonly column: Column<Row>;
  readonly row: Row;
  readonly href?: string | undefined;
}

/** What a column says of a row. That there is nothing is told by its place in a table, and left out of a card. */
export function Cell<Row>({ column, row, href }: CellProps<Row>) {
  const cell = column.cell(row);
  return (
    <td
      data-end={column.atEnd}
      data-wide={column.isWide}
      data-beside={column.isBesideFirst ?? STATUSES.includes(column.id)}
      data-title={column.title}
      data-none={cell === false ? true : undefined}
    >
      {href === undefined ? (
        <div>{cell}</div>
      ) : (
        <RowLink to={href} className={styles.first}>
          {cell}
        </RowLink>
      )}
    </td>
  );
}

/** A row is drawn anew where it is another one. Columns that stay the same from one rendering to the next save the rest. */
const Row = memo(RowShown) as typeof RowShown;

interface PagingProps {
  /** Of which list: a page may have several. */
  readonly label: string;
  readonly of: Listed<unknown>;
  readonly onPage: (page: number) => void;
}

const Paging = memo(function Paging({ label, of, onPage }: PagingProps) {
  const { page, limit, total, rows, isExact, hasNext } = of;
  const { t, i18n } = useTranslation();
  const format = numbers(i18n.language);
  const first = rows.length === 0 ? 0 : (page - 1) * limit + 1;
  const last = rows.length === 0 ? 0 : first + rows.length - 1;
  return (
    <nav className={styles.paging} aria-label={`${t("list.pages")} · ${label}`}>
      <span className="muted number" role="status">
        {t(isExact ? "list.range" : "list.rangeOpen", {
          first: format.format(first),
          last: format.format(last),
          total: format.format(total),
        })}
      </span>
      <span className="row">
        <Button
          variant="default"
          size="compact-md"
          fz="sm"
          disabled={page <= 1}
          onClick={() => {
            onPage(page - 1);
          }}
        >
          {t("list.previous")}
        </Button>
        <Button
          variant="default"
          size="compact-md"
          fz="sm"
          disabled={!hasNext}
          onClick={() => {
            onPage(page + 1);
          }}
        >
          {t("list.next")}
        </Button>
      </span>
    </nav>
  );
});
