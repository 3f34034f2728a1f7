import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Amount } from "../../ui/Amount";
import { ChangedMeanwhile, useBegun } from "../../ui/Changed";
import { ErrorNote } from "../../ui/Feedback";
import { None } from "../../ui/None";
import { numbers, showList } from "../../ui/format";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { useAct } from "../../ui/useAct";
import { api, unwrap, useWords } from "../api";
import { useChainOptions, useCoinNames, usePermitted } from "../queries";

import type { Settings } from "./fields";
import { merged } from "./merged";
import { settingsQuery } from "./queries";
import { Rows, useColumnTitle } from "./Rows";
import styles from "./Rows.module.css";
import { cellOf, errorsOf, isTwice, opened, type Row, type Table, type TableColumn } from "./tables";
import { useTold } from "./useTold";

/** Weights of every chain that has none of its own stand under this name. */
const DEFAULT_CHAIN = "default";

interface TableSectionProps {
  readonly table: Table;
  readonly settings: Settings;
}

/** A setting that is a list or a map: what is in it, and fields to change it. It is sent as a whole. */
export function TableSection({ table, settings }: TableSectionProps) {
  const { t } = useWords();
  const title = useColumnTitle();
  const mayChange = usePermitted("settings.change");
  const [isOpen, setOpen] = useState(false);
  const rows = table.read(settings);
  const placed = rows.map((row, index) => ({ row, place: table.placeOf(row, index) }));
  return (
    <Section
      id={table.name}
      title={t(`table.${table.name}`)}
      actions={
        mayChange &&
        !isOpen && (
          <Button
            variant="default"
            size="compact-md"
            onClick={() => {
              setOpen(true);
            }}
          >
            {t("settings.change")}
          </Button>
        )
      }
    >
      <div className="stack">
        <p className="muted">{t(`tableWords.${table.name}`)}</p>
        {isOpen ? (
          <Edit
            table={table}
            settings={settings}
            onDone={() => {
              setOpen(false);
            }}
          />
        ) : rows.length === 0 ? (
          <p>{t("settings.nothing")}</p>
        ) : (
          <Plain
            label={t(`table.${table.name}`)}
            rows={placed}
            rowKey={({ place }) => place}
            columns={table.columns.map(({ name, kind, blank }) => ({
              id: name,
              title: title(name),
              atEnd: kind === "amount" || kind === "whole",
              cell: ({ row }: Placed) => <Shown text={cellOf(row, name)} kind={kind} blank={blank} />,
            }))}
          />
        )}
      </div>
    </Section>
  );
}

interface Placed {
  readonly row: Row;
}

interface ShownProps {
  readonly text: string;
  readonly kind: TableColumn["kind"];
  readonly blank: TableColumn["blank"];
}

function Shown({ text, kind, blank }: ShownProps) {
  const { t, i18n } = useWords();
  if (text === "") return blank === undefined ? <None /> : t(`settings.${blank}`);
  if (kind === "switch") return t(text === "true" ? "settings.on" : "settings.off");
  if (kind === "text") return <code className="whole">{text}</code>;
  if (kind === "amount") return <Amount value={text} />;
  return <span className="number">{kind === "whole" ? numbers(i18n.language).format(Number(text)) : text}</span>;
}

interface EditProps extends TableSectionProps {
  readonly onDone: () => void;
}

function Edit({ table, settings, onDone }: EditProps) {
  const { t, i18n } = useWords();
  const client = useQueryClient();
  const coins = useCoinNames();
  const chains = useChainOptions().map(({ value }) => value);
  const [begun, setBegun] = useState<readonly Row[]>(() => table.read(settings));
  const [rows, setRows] = useState(begun);
  const { send, changed } = useBegun({
    now: settings,
    told: useTold(),
    readAgain: () => client.query({ ...settingsQuery, staleTime: 0 }),
    // All rows are sent, and what others made of them is not undone by it.
    onChanged: (read) => {
      const fresh = table.read(read);
      setRows((own) => merged(table, { begun, own, fresh }));
      setBegun(fresh);
    },
  });
  const save = useAct(async () => {
    await send(({ version }) => unwrap(api.PUT("/api/admin/settings", { body: { version, ...table.patch(rows) } })));
    await client.invalidateQueries(settingsQuery);
    onDone();
  });
  const refused = save.error?.details ?? [];
  const chainsOpened = opened(table, begun, rows);
  return (
    <form className={`stack ${styles.form ?? ""}`} onSubmit={save.submit}>
      <ChangedMeanwhile changed={changed} />
      <Rows
        table={table}
        rows={rows}
        onRows={setRows}
        errorsOf={(index) => errorsOf(table, rows, index, refused)}
        coins={coins}
        chains={table.name === "weights" ? [DEFAULT_CHAIN, ...chains] : chains}
      />
      {chainsOpened.length > 0 && (
        <p role="alert">{t("settings.opened", { chains: showList(chainsOpened, i18n.language) })}</p>
      )}
      {save.error !== null && <ErrorNote error={save.error} />}
      <div className="row">
        <Button type="submit" loading={save.isRunning} disabled={rows.some((_, index) => isTwice(table, rows, index))}>
          {t("settings.save")}
        </Button>
        <Button variant="default" disabled={save.isRunning} onClick={onDone}>
          {t("common:ui.cancel")}
        </Button>
      </div>
    </form>
  );
}
