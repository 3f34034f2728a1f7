import { Button } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { ErrorNote } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { useAct } from "../../ui/useAct";
import { api, unwrap, useWords } from "../api";
import { ChangedMeanwhile, useBegun } from "../Changed";
import { useChainOptions, useCoinNames, usePermitted } from "../queries";

import type { Settings } from "./fields";
import { decided, settingsQuery } from "./queries";
import { Rows, useColumnTitle } from "./Rows";
import { cellOf, errorsOf, isTwice, type Row, type Table } from "./tables";

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
            columns={table.columns.map(({ name, kind }) => ({
              id: name,
              title: title(name),
              atEnd: kind === "amount" || kind === "whole",
              cell: ({ row }: Placed) => <Shown text={cellOf(row, name)} kind={kind} />,
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
  readonly kind: Table["columns"][number]["kind"];
}

function Shown({ text, kind }: ShownProps) {
  const { t } = useWords();
  if (text === "") return "–";
  if (kind === "switch") return t(text === "true" ? "settings.on" : "settings.off");
  return kind === "text" ? <code className="break">{text}</code> : <span className="number">{text}</span>;
}

interface EditProps extends TableSectionProps {
  readonly onDone: () => void;
}

function Edit({ table, settings, onDone }: EditProps) {
  const { t } = useWords();
  const client = useQueryClient();
  const coins = useCoinNames();
  const chains = useChainOptions().map(({ value }) => value);
  const [rows, setRows] = useState<readonly Row[]>(table.read(settings));
  const { send, changed } = useBegun({
    now: settings,
    shown: decided,
    readAgain: () => client.query({ ...settingsQuery, staleTime: 0 }),
  });
  const save = useAct(async () => {
    await send(({ version }) => unwrap(api.PUT("/api/admin/settings", { body: { version, ...table.patch(rows) } })));
    await client.invalidateQueries(settingsQuery);
    onDone();
  });
  const refused = save.error?.details ?? [];
  return (
    <form className="stack" onSubmit={save.submit}>
      <ChangedMeanwhile changed={changed} />
      <Rows
        table={table}
        rows={rows}
        onRows={setRows}
        errorsOf={(index) => errorsOf(table, rows, index, refused)}
        coins={coins}
        chains={table.name === "weights" ? [DEFAULT_CHAIN, ...chains] : chains}
      />
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
