import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { timesOf } from "../../ui/days";
import { Text } from "../../ui/Text";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords } from "../api";
import { usePermitted } from "../queries";

interface StatementButtonProps {
  readonly merchantId: string;
  readonly mode: "live" | "sandbox";
}

/** Has a merchant's statement made as a file, and leads to the job that makes it. */
export function StatementButton({ merchantId, mode }: StatementButtonProps) {
  const { t } = useWords();
  const navigate = useNavigate();
  const [from, setFrom] = useState("");
  const [until, setUntil] = useState("");
  if (!usePermitted("jobs.change")) return null;
  return (
    <ActButton
      isSmall
      act={t("merchants.statement")}
      title={t("merchants.statementTitle")}
      onConfirm={async () => {
        const { from: since = null, to = null } = timesOf(from, until);
        const body = { kind: "statement_export", merchantId, mode, since, until: to } as const;
        const { job } = await unwrap(api.POST("/api/admin/jobs", { body }));
        await navigate({ to: `/jobs/${job.jobId}` });
      }}
    >
      <p>{t("merchants.statementWords")}</p>
      <Text label={t("common:list.from")} type="date" max={until} value={from} onText={setFrom} />
      <Text label={t("common:list.until")} type="date" min={from} value={until} onText={setUntil} />
    </ActButton>
  );
}
