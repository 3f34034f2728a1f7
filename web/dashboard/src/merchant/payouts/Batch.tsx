import { Button, FileButton, Textarea } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { Confirm } from "../../ui/Confirm";
import { ErrorNote } from "../../ui/Feedback";
import { Plain } from "../../ui/Plain";
import { Chip } from "../../ui/Status";
import { useAct } from "../../ui/useAct";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";

import { ROWS_MAX, readRows, total, type PayoutRow } from "./rows";

type Rejected = Schemas["Rejected"];

/** Many payouts from a CSV file: every row is looked at before anything is sent. */
export function Batch({ balance }: { readonly balance: Schemas["BalanceView"] }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [text, setText] = useState("");
  const [isAsked, setAsked] = useState(false);
  const [refused, setRefused] = useState<ReadonlyMap<number, Rejected>>(new Map());
  const [rejected, setRejected] = useState<readonly Rejected[]>([]);
  // One key for one text: sending the same again pays nobody twice, and another text is another batch.
  const [idempotencyKey, setKey] = useState(() => crypto.randomUUID());
  const rows = readRows(text, balance.decimals);
  const wrong = rows.filter((one, index) => one.problem !== null || refused.has(index)).length;
  const sum = total(
    rows.filter((one) => one.problem === null),
    balance.decimals,
  );
  const isTooLong = rows.length > ROWS_MAX;

  function read(typed: string): void {
    setText(typed);
    setRefused(new Map());
    setRejected([]);
    setKey(crypto.randomUUID());
  }

  const destinations = rows.map(({ toAddress, amount }) => ({ toAddress, amount }));
  const asked = { chain: balance.chain, token: balance.token, destinations };
  const params = { path: { projectId } };
  // What this page cannot know of a row the API says: whether the chain has such an address, and the limits.
  const check = useAct(async () => {
    const path = "/api/dashboard/projects/{projectId}/wallet/payout/batch/check";
    const checked = await unwrap(api.POST(path, { params, body: asked }));
    setRefused(new Map(checked.rejected.map((one) => [one.row, one])));
    setAsked(checked.rejected.length === 0);
  });

  async function pay(): Promise<void> {
    const path = "/api/dashboard/projects/{projectId}/wallet/payout/batch";
    const made = await unwrap(api.POST(path, { params, body: { ...asked, idempotencyKey } }));
    await client.invalidateQueries({ queryKey: ["project", projectId] });
    if (made.rejected.length > 0) setRejected(made.rejected);
    else await navigate({ to: `/${projectId}/payouts`, search: { batchId: made.batch.batchId } });
  }

  return (
    <div className="stack">
      <Textarea
        label={t("batch.rows")}
        description={t("batch.words", { count: ROWS_MAX })}
        autosize
        minRows={4}
        maxRows={12}
        spellCheck={false}
        readOnly={check.isRunning}
        value={text}
        onChange={(event) => {
          read(event.currentTarget.value);
        }}
      />
      <div className="row">
        <FileButton accept=".csv,.txt,text/csv,text/plain" onChange={(file) => void file?.text().then(read)}>
          {(props) => (
            <Button {...props} variant="default" disabled={check.isRunning}>
              {t("batch.file")}
            </Button>
          )}
        </FileButton>
      </div>
      {rows.length > 0 && (
        <Plain
          label={t("batch.rows")}
          rows={rows}
          rowKey={(one) => String(one.line)}
          columns={[
            { id: "line", title: t("batch.line"), cell: (one) => one.line },
            {
              id: "to",
              title: t("payouts.to"),
              cell: (one) => (one.toAddress === "" ? "–" : <Address value={one.toAddress} />),
            },
            {
              id: "amount",
              title: t("payments.amount"),
              atEnd: true,
              cell: (one) => <span className="number">{one.amount}</span>,
            },
            {
              id: "problem",
              title: t("payments.status"),
              cell: (one) => <Judgement row={one} refusal={refused.get(rows.indexOf(one))} />,
            },
          ]}
        />
      )}
      {rows.length > 0 && (
        <p role="status">
          {t("batch.count", { count: rows.length })} · <Amount value={sum} token={balance.token} />
          {wrong > 0 && <> · {t("batch.wrong", { count: wrong })}</>}
          {isTooLong && <> · {t("batch.tooLong", { count: ROWS_MAX })}</>}
        </p>
      )}
      {rejected.length > 0 && (
        <div role="alert">
          <p>{t("batch.rejected", { count: rejected.length })}</p>
          <ul>
            {rejected.map((one) => (
              <li key={one.row}>
                {one.row}: {one.toAddress} {one.amount} · {one.error} <code>{one.code}</code>
              </li>
            ))}
          </ul>
        </div>
      )}
      {check.error !== null && <ErrorNote error={check.error} />}
      <div className="row">
        <Button
          disabled={rows.length === 0 || wrong > 0 || isTooLong || rejected.length > 0}
          loading={check.isRunning}
          onClick={() => void check.run()}
        >
          {t("payouts.check")}
        </Button>
      </div>
      {isAsked && (
        <Confirm
          title={t("batch.confirm", { count: rows.length })}
          act={t("payouts.pay")}
          isDangerous
          onConfirm={pay}
          onClose={() => {
            setAsked(false);
          }}
        >
          <p>
            <Amount value={sum} token={balance.token} /> · {balance.chain}
          </p>
          <p>{t("payouts.words")}</p>
        </Confirm>
      )}
    </div>
  );
}

interface JudgementProps {
  readonly row: PayoutRow;
  readonly refusal: Rejected | undefined;
}

/** What is wrong with a row, in the page's words or in the API's. */
function Judgement({ row, refusal }: JudgementProps) {
  const { t } = useTranslation();
  if (row.problem !== null) return <Chip tone="bad">{t(`batch.problem.${row.problem}`)}</Chip>;
  if (refusal === undefined) return <Chip tone="good">{t("batch.good")}</Chip>;
  return (
    <>
      <Chip tone="bad">{refusal.error}</Chip> <code>{refusal.code}</code>
    </>
  );
}
