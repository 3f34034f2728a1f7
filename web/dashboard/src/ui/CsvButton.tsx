import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { authorized } from "../api/client";
import { saveCsv, type Send } from "../api/download";
import type { Session } from "../api/session";

import { ErrorNote } from "./Feedback";
import { useAct } from "./useAct";

interface ListFile {
  readonly path: string;
  /** What the list shows just now. */
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly name: string;
}

interface CsvButtonProps extends ListFile {
  readonly session: Session;
}

/** Saves all of what a list's filters leave, as a file. */
export function CsvButton({ session, ...file }: CsvButtonProps) {
  return <SaveCsv {...file} send={authorized(session)} />;
}

interface SaveCsvProps extends ListFile {
  readonly send: Send;
}

/** The same, of a list that is no session's. */
export function SaveCsv({ path, query, name, send }: SaveCsvProps) {
  const { t } = useTranslation();
  const download = useAct(() => {
    const search = new URLSearchParams({ format: "csv" });
    for (const [key, value] of Object.entries(query)) if (value !== undefined) search.set(key, value);
    return saveCsv(`${path}?${search.toString()}`, `${name}.csv`, send);
  });
  return (
    <>
      {download.error !== null && <ErrorNote error={download.error} />}
      <Button variant="default" loading={download.isRunning} onClick={() => void download.run()}>
        {t("ui.csv")}
      </Button>
    </>
  );
}
