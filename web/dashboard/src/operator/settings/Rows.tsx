import { Button, Select, Switch } from "@mantine/core";

import { useMeaning } from "../../ui/Meaning";
import { Text } from "../../ui/Text";
import { useWords } from "../api";

import styles from "./Rows.module.css";
import { cellOf, isTwice, type Row, type RowErrors, type Table, type TableColumn } from "./tables";

const PATTERNS: Partial<Record<TableColumn["kind"], string>> = { whole: "[0-9]+", amount: "[0-9]+([.][0-9]+)?" };

/** Return what gives the title of a column. */
export function useColumnTitle(): (name: string) => string {
  const { t } = useWords();
  const meaning = useMeaning();
  const known: Readonly<Record<string, string>> = {
    coin: t("merchants.coin"),
    perTransaction: t("merchants.perTransaction"),
    perDay: t("merchants.perDay"),
    chain: t("record.chain"),
    address: t("record.address"),
    project: t("record.project"),
    provider: t("record.provider"),
    payment: t("one.payments"),
    isOn: t("settings.on"),
    name: t("record.name"),
    cpt: t("merchants.credits"),
    priceUsd: t("plans.priceUsd"),
    minimum: t("column.minimum"),
    gas: t("column.gas"),
    give: t("column.give"),
    get: t("column.get"),
    rate: t("column.rate"),
    minCpt: t("column.minCpt"),
    maxCpt: t("column.maxCpt"),
    pricePer10kUsd: t("column.pricePer10kUsd"),
  };
  return (name) => known[name] ?? meaning("kind", name);
}

interface RowsProps {
  readonly table: Table;
  readonly rows: readonly Row[];
  readonly onRows: (rows: readonly Row[]) => void;
  readonly errorsOf: (index: number) => RowErrors;
  /** What coins and chains are chosen from. */
  readonly coins: readonly string[];
  readonly chains: readonly string[];
}

/** Rows of fields, to be added to and taken from. */
export function Rows({ table, rows, onRows, errorsOf, coins, chains }: RowsProps) {
  const { t } = useWords();
  const blank = Object.fromEntries(
    table.columns.map(({ name, kind }) => [name, kind === "switch" ? "false" : ""] as const),
  );
  return (
    <div className="stack">
      {rows.map((row, index) => (
        <fieldset key={index} className={styles.row}>
          <legend className="unseen">{t("settings.row", { number: index + 1 })}</legend>
          {table.columns.map((column, at) => (
            <Cell
              key={column.name}
              column={column}
              value={cellOf(row, column.name)}
              offered={column.kind === "chain" ? chains : coins}
              error={
                errorsOf(index).get(column.name) ??
                (at === 0 && isTwice(table, rows, index) ? t("settings.twice") : undefined)
              }
              onValue={(value) => {
                onRows(rows.map((one, other) => (other === index ? { ...one, [column.name]: value } : one)));
              }}
            />
          ))}
          <Button
            variant="default"
            className={styles.remove}
            onClick={() => {
              onRows(rows.filter((_, other) => other !== index));
            }}
          >
            {t("settings.removeRow")}
          </Button>
        </fieldset>
      ))}
      <div className="row">
        <Button
          variant="default"
          onClick={() => {
            onRows([...rows, blank]);
          }}
        >
          {t("settings.addRow")}
        </Button>
      </div>
    </div>
  );
}

interface CellProps {
  readonly column: TableColumn;
  readonly value: string;
  readonly offered: readonly string[];
  readonly error: string | undefined;
  readonly onValue: (value: string) => void;
}

function Cell({ column, value, offered, error, onValue }: CellProps) {
  const { t } = useWords();
  const label = useColumnTitle()(column.name);
  const isRequired = column.isOptional !== true;
  if (column.kind === "switch")
    return (
      <Switch
        className={styles.switch}
        label={label}
        checked={value === "true"}
        onChange={(event) => {
          onValue(String(event.currentTarget.checked));
        }}
      />
    );
  if (column.kind === "coin" || column.kind === "chain")
    return (
      <Select
        label={label}
        required={isRequired}
        searchable
        // What was written once may be gone by now, and is shown all the same.
        data={value === "" || offered.includes(value) ? [...offered] : [value, ...offered]}
        value={value === "" ? null : value}
        error={error}
        onChange={(chosen) => {
          onValue(chosen ?? "");
        }}
      />
    );
  const pattern = PATTERNS[column.kind];
  return (
    <Text
      label={label}
      required={isRequired}
      autoComplete="off"
      spellCheck={false}
      {...(pattern === undefined
        ? {}
        : { pattern, inputMode: column.kind === "whole" ? ("numeric" as const) : ("decimal" as const) })}
      {...(column.blank === undefined ? {} : { placeholder: t(`settings.${column.blank}`) })}
      value={value}
      error={error}
      onText={onValue}
    />
  );
}
