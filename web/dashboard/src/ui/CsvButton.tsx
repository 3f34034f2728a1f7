import { Button } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { downloadCsv } from "../api/download";
import type { Session } from "../api/session";

import { ErrorNote } from "./Feedback";
import { useAct } from "./useAct";

interface CsvButtonProps {
  readonly path: string;
  /** What the list shows just now. */
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly name: string;
  readonly session: Session;
}

/** Saves all of what a list's filters leave, as a file. */
export function CsvButton({ path, query, name, session }: CsvButtonProps) {
  const { t } = useTranslation();
  const download = useAct(() => {
    const search = new URLSearchParams({ format: "csv" });
    for (const [key, value] of Object.entries(query)) if (value !== undefined) search.set(key, value);
    return downloadCsv(`${path}?${search.toString()}`, `${name}.csv`, session);
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
