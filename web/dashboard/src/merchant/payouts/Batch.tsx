import { Button, FileButton, Textarea } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { Confirm } from "../../ui/Confirm";
import { Plain } from "../../ui/Plain";
import { Chip } from "../../ui/Status";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";

import { ROWS_MAX, readRows, total } from "./rows";

type Rejected = Schemas["Rejected"];

/** Many payouts from a CSV file: every row is looked at before anything is sent. */
export function Batch({ balance }: { readonly balance: Schemas["BalanceView"] }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [text, setText] = useState("");
  const [isAsked, setAsked] = useState(false);
  const [rejected, setRejected] = useState<readonly Rejected[]>([]);
  // One key for one text: sending the same again pays nobody twice, and another text is another batch.
  const [idempotencyKey, setKey] = useState(() => crypto.randomUUID());
  const rows = readRows(text, balance.decimals);
  const wrong = rows.filter((one) => one.problem !== null);
  const sum = total(
    rows.filter((one) => one.problem === null),
    balance.decimals,
  );
  const isTooLong = rows.length > ROWS_MAX;

  function read(typed: string): void {
    setText(typed);
    setRejected([]);
    setKey(crypto.randomUUID());
  }

  async function pay(): Promise<void> {
    const destinations = rows.map(({ toAddress, amount }) => ({ toAddress, amount }));
    const body = { chain: balance.chain, token: balance.token, destinations, idempotencyKey };
    const params = { path: { projectId } };
    const path = "/api/dashboard/projects/{projectId}/wallet/payout/batch";
    const made = await unwrap(api.POST(path, { params, body }));
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
        value={text}
        onChange={(event) => {
          read(event.currentTarget.value);
        }}
      />
      <div className="row">
        <FileButton accept=".csv,.txt,text/csv,text/plain" onChange={(file) => void file?.text().then(read)}>
          {(props) => (
            <Button {...props} variant="default">
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
              cell: (one) =>
                one.problem === null ? (
                  <Chip tone="good">{t("batch.good")}</Chip>
                ) : (
                  <Chip tone="bad">{t(`batch.problem.${one.problem}`)}</Chip>
                ),
            },
          ]}
        />
      )}
      {rows.length > 0 && (
        <p role="status">
          {t("batch.count", { count: rows.length })} · <Amount value={sum} token={balance.token} />
          {wrong.length > 0 && <> · {t("batch.wrong", { count: wrong.length })}</>}
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
      <div className="row">
        <Button
          disabled={rows.length === 0 || wrong.length > 0 || isTooLong || rejected.length > 0}
          onClick={() => {
            setAsked(true);
          }}
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
