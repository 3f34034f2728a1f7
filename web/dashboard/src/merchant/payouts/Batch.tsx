import { Button, Checkbox, FileButton, Textarea } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import { api, unwrap } from "../api";
import { Amount } from "../../ui/Amount";
import { Confirm } from "../../ui/Confirm";
import { ErrorNote, hasParticulars } from "../../ui/Feedback";
import { numbers, showFirst, showList } from "../../ui/format";
import { Plain } from "../../ui/Plain";
import { Said } from "../../ui/Said";
import { minus } from "../../ui/units";
import { useAct } from "../../ui/useAct";
import { InMode } from "../InMode";
import { once } from "../../api/once";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";

import { Judgement, Line, Marked, To, wrongOf } from "./RowCells";
import { destinationOf, ROWS_MAX, readRows, total, type PayoutRow } from "./rows";
import { useHasTags } from "./useRecipient";

type Rejected = Schemas["Rejected"];

/** What the API said of rows before anything was paid, and of which rows it said so. */
interface Checked {
  readonly of: string;
  readonly refused: ReadonlyMap<number, Rejected>;
}

interface Left extends Rejected {
  readonly to: string;
  readonly line: number;
}

/** Lines that are named of those that have to be mended: among a hundred nobody finds them by scrolling. */
const LINES_SHOWN = 8;

/** Many payouts from a CSV file: every row is looked at before anything is sent. */
export function Batch({ balance }: { readonly balance: Schemas["BalanceView"] }) {
  const { t, i18n } = useTranslation();
  const projectId = useProjectId();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [text, setText] = useState("");
  const [checked, setChecked] = useState<Checked | null>(null);
  const [approved, setApproved] = useState<string | null>(null);
  const [left, setLeft] = useState<readonly Left[]>([]);
  const [isTwiceMeant, setTwiceMeant] = useState(false);
  const resetFile = useRef<() => void>(null);
  const hasTags = useHasTags(balance.chain);
  const rows = readRows(text, balance.decimals, hasTags);
  const askedWith = (read: readonly PayoutRow[]) => ({
    chain: balance.chain,
    token: balance.token,
    destinations: read.map(({ toAddress, tag, amount }) => ({
      toAddress,
      ...(tag === undefined ? {} : { toTag: tag }),
      amount,
    })),
  });
  const asked = askedWith(rows);
  // What was said of other rows, or of another balance, says nothing of these.
  const of = JSON.stringify(asked);
  const refused = checked?.of === of ? checked.refused : NOTHING_REFUSED;
  const refusalOf = (one: PayoutRow) => refused.get(rows.indexOf(one));
  const isUnreadable = rows.some((one) => one.problem !== null);
  const twice = rows.filter((one) => one.isTwice).length;
  const wrongLines = rows.filter((one, row) => one.problem !== null || refused.has(row)).map((one) => one.line);
  const sum = total(
    rows.filter((one) => one.problem === null),
    balance.decimals,
  );
  const isOverdrawn = minus(sum, balance.available) !== "0";
  const isTooLong = rows.length > ROWS_MAX;

  function sayWrong(): string {
    const { language } = i18n;
    const lines = wrongLines.slice(0, LINES_SHOWN).map((line) => numbers(language).format(line));
    const { length: count } = wrongLines;
    if (count <= LINES_SHOWN) return t("batch.wrong", { count, lines: showList(lines, language) });
    return t("batch.wrongCut", { count, lines: showFirst(lines, language) });
  }

  function read(typed: string): void {
    setText(typed);
    setLeft([]);
    setTwiceMeant(false);
  }

  async function readFile(file: File | null): Promise<void> {
    if (file === null) return;
    read(await file.text());
    // A browser tells of the same file only once, also when it was mended since.
    resetFile.current?.();
  }

  const params = { path: { projectId } };
  // What this page cannot know of a row the API says: whether the chain has such an address, and the limits.
  const check = useAct(async () => {
    const path = "/api/dashboard/projects/{projectId}/wallet/payout/batch/check";
    const { rejected } = await unwrap(api.POST(path, { params, body: asked }));
    setChecked({ of, refused: new Map(rejected.map((one) => [one.row, one])) });
    setApproved(rejected.length === 0 ? of : null);
  });

  async function pay(): Promise<void> {
    const path = "/api/dashboard/projects/{projectId}/wallet/payout/batch";
    const made = await once(`batch ${projectId}`, (idempotencyKey) =>
      unwrap(api.POST(path, { params, body: { ...asked, idempotencyKey } })),
    );
    void client.invalidateQueries({ queryKey: ["project", projectId] });
    if (made.rejected.length === 0) {
      await navigate({ to: `/${projectId}/payouts`, search: { batchId: made.batch.batchId } });
      return;
    }
    // What is being paid must not be paid again with what is mended: the rest alone is left to be sent.
    const rest = made.rejected.map((one) => `${destinationOf(rows[one.row] ?? one)},${one.amount}\n`).join("");
    read(rest);
    // They are marked as they are by a check.
    const again = JSON.stringify(askedWith(readRows(rest, balance.decimals, hasTags)));
    setChecked({ of: again, refused: new Map(made.rejected.map((one, row) => [row, one])) });
    setLeft(
      made.rejected.map((one) => ({
        ...one,
        to: destinationOf(rows[one.row] ?? one),
        line: rows[one.row]?.line ?? one.row + 1,
      })),
    );
  }

  return (
    <div className="stack">
      <Textarea
        label={t("batch.rows")}
        description={[t("batch.words", { count: ROWS_MAX }), ...(hasTags ? [t("batch.tagWords")] : [])].join(" ")}
        autosize
        minRows={4}
        maxRows={12}
        spellCheck={false}
        placeholder={EXAMPLE}
        readOnly={check.isRunning}
        value={text}
        onChange={(event) => {
          read(event.currentTarget.value);
        }}
      />
      <div className="row">
        <FileButton
          resetRef={resetFile}
          accept=".csv,.txt,text/csv,text/plain"
          onChange={(file) => void readFile(file)}
        >
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
            { id: "line", title: t("batch.line"), cell: (one) => <Line number={one.line} /> },
            {
              id: "to",
              title: t("payouts.to"),
              cell: (one) => {
                const isWrong = TO.has(wrongOf(one, refusalOf(one)));
                return (
                  <Marked isWrong={isWrong}>
                    <To row={one} isWrong={isWrong} />
                  </Marked>
                );
              },
            },
            {
              id: "amount",
              title: t("payments.amount"),
              atEnd: true,
              cell: (one) => (
                <Marked isWrong={wrongOf(one, refusalOf(one)) === "amount"}>
                  {one.problem === null ? (
                    <Amount value={one.amount} token={balance.token} />
                  ) : (
                    <span className="number">{one.amount}</span>
                  )}
                </Marked>
              ),
            },
            {
              id: "problem",
              title: t("payments.status"),
              cell: (one) => (
                <Judgement
                  row={one}
                  isTwiceMeant={isTwiceMeant}
                  isChecked={checked?.of === of}
                  refusal={refusalOf(one)}
                />
              ),
            },
          ]}
        />
      )}
      {rows.length > 0 && (
        <p role="status">
          {t("batch.count", { count: rows.length })} · <Amount value={sum} token={balance.token} />
          {wrongLines.length > 0 && <> · {sayWrong()}</>}
          {isOverdrawn && <> · {t("batch.overdrawn")}</>}
          {isTooLong && <> · {t("batch.tooLong", { count: ROWS_MAX })}</>}
        </p>
      )}
      {twice > 0 && (
        <Checkbox
          label={t("batch.twiceMeant", { count: twice })}
          checked={isTwiceMeant}
          disabled={check.isRunning}
          onChange={(event) => {
            setTwiceMeant(event.currentTarget.checked);
          }}
        />
      )}
      {left.length > 0 && (
        <div role="alert">
          <p>{t("batch.rejected", { count: left.length })}</p>
          <ul>
            {left.map((one) => (
              <li key={one.row}>
                {one.line}: <bdi dir="ltr">{one.to}</bdi> <Amount value={one.amount} token={balance.token} /> ·{" "}
                <Said of="errors" code={one.code} words={one.error} withOwn={hasParticulars(one.code)} />{" "}
                <code>{one.code}</code>
              </li>
            ))}
          </ul>
        </div>
      )}
      {check.error !== null && <ErrorNote error={check.error} />}
      <div className="row">
        <Button
          disabled={rows.length === 0 || isUnreadable || isTooLong || (twice > 0 && !isTwiceMeant)}
          loading={check.isRunning}
          onClick={() => void check.run()}
        >
          {t("payouts.check")}
        </Button>
      </div>
      {approved === of && (
        <Confirm
          title={t("batch.confirm", { count: rows.length })}
          act={t("payouts.pay")}
          isDangerous
          onConfirm={pay}
          onClose={() => {
            setApproved(null);
          }}
        >
          <p>
            <Amount value={sum} token={balance.token} /> · <ChainName of={balance.chain} /> <InMode />
          </p>
          <p>{t("payouts.words")}</p>
        </Confirm>
      )}
    </div>
  );
}

/** Of which form the rows are; nobody has these addresses. */
const EXAMPLE = "0x1111111111111111111111111111111111111111,12.5\n0x2222222222222222222222222222222222222222,80";

/** What of a row its first cell says. */
const TO: ReadonlySet<string | null> = new Set(["toAddress", "toTag"]);

const NOTHING_REFUSED: ReadonlyMap<number, Rejected> = new Map();
