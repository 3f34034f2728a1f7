import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { ChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { usePathPart } from "../../ui/address";
import { Amount } from "../../ui/Amount";
import { Copyable } from "../../ui/Copyable";
import { useMeaning } from "../../ui/Meaning";
import { None } from "../../ui/None";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Said } from "../../ui/Said";
import { Moment, When } from "../../ui/When";
import { useWords, type Schemas } from "../api";
import { MerchantLink } from "../merchants/MerchantLink";
import { useFeeCoin, usePermitted } from "../queries";

import { IntentActs } from "./IntentActs";
import { IntentState } from "./IntentState";
import { intentQuery, type Intent } from "./queries";
import { Signed } from "./Signed";
import { WaitsFor } from "./WaitsFor";

const POLL_MS = 5_000;
/** What is over at the moment that the API names; for anything else, it is only when somebody looks again. */
const ENDS_THEN: ReadonlySet<string> = new Set([
  "signer: HOURLY_CAP",
  "signer: HOURLY_FEES",
  "signer: TARGET_TOO_FRESH",
]);
/** What fails of these is given back to the merchant; of refunds and exchanges it depends. */
const GIVEN_BACK: ReadonlySet<string> = new Set(["payout", "auto_payout", "withdrawal"]);
const WAITS_FOR_PERSON = "signer: APPROVAL_NEEDED";
const WAITS_FOR_FILE = "token_not_sendable";
const WAITS_FOR_ENDPOINT = "nonce_doubted";

/** One thing that is to be sent: what it waits for, its transactions, and what can be done about it. */
export function IntentPage() {
  const { t } = useWords();
  const query = useQuery({ ...intentQuery(usePathPart("intentId")), refetchInterval: POLL_MS });
  return (
    <QueryPage title={t("nav.queue")} query={query}>
      {(intent) => <Shown intent={intent} />}
    </QueryPage>
  );
}

function Shown({ intent }: { readonly intent: Intent }) {
  const { t } = useWords();
  const meaning = useMeaning();
  const { waitsFor, feeRaise, settlement } = intent;
  const hasEnded = intent.state === "done" || intent.state === "failed";
  return (
    <Page
      title={meaning("kind", intent.kind)}
      tab={`${intent.kind} ${intent.intentId}`}
      lead={
        <span className="row">
          <IntentState state={intent.state} isCancelled={intent.cancelAskedAt !== null} />
          <Copyable text={intent.intentId}>
            <code>{intent.intentId}</code>
          </Copyable>
          <When at={intent.createdAt} />
        </span>
      }
      actions={<IntentActs intent={intent} />}
    >
      <Section title={t(hasEnded ? "jobs.result" : "queue.now")}>
        <Facts
          facts={[
            [t("record.waits"), waitsFor === null ? null : <Waiting key="waits" what={waitsFor} />],
            [
              t(waitsFor !== null && ENDS_THEN.has(waitsFor.code) ? "queue.until" : "record.due"),
              waitsFor?.until == null ? null : <Moment key="until" at={waitsFor.until} />,
            ],
            [
              t("queue.behind"),
              hasEnded || intent.behind === null ? null : (
                <Link key="behind" to={`/queue/${intent.behind}`}>
                  {intent.behind}
                </Link>
              ),
            ],
            [
              t("queue.cancelAsked"),
              intent.cancelAskedAt === null ? null : <When key="cancel" at={intent.cancelAskedAt} />,
            ],
            [t("queue.money"), intent.state === "failed" && GIVEN_BACK.has(intent.kind) ? t("queue.moneyBack") : null],
            [t("queue.raiseAsked"), feeRaise?.askedAt == null ? null : <When key="raise" at={feeRaise.askedAt} />],
            [t("queue.raiseRefused"), feeRaise?.refusal == null ? null : <Refusal key="unraised" of={feeRaise} />],
            [t("queue.signedNonce"), settlement?.nonce],
            [
              t("queue.signedTx"),
              settlement?.signedTxHash == null ? null : <Address key="signed" value={settlement.signedTxHash} whole />,
            ],
            [
              t("queue.settleNamed"),
              settlement?.txHash == null ? null : <Address key="named" value={settlement.txHash} whole />,
            ],
            [
              t("queue.settleAsked"),
              settlement?.askedAt == null ? null : <When key="settle" at={settlement.askedAt} />,
            ],
            [
              t("queue.settleRefused"),
              settlement?.refusal == null ? null : <Refusal key="unsettled" of={settlement} />,
            ],
            [t("record.updated"), <When key="updated" at={intent.updatedAt} />],
          ]}
        />
      </Section>
      <Section title={t("common:payment.details")}>
        <Facts
          facts={[
            [
              t("record.amount"),
              intent.amount === null ? (
                intent.token
              ) : (
                <Amount key="amount" value={intent.amount} token={intent.token} />
              ),
            ],
            [t("record.chain"), <ChainName key="chain" of={intent.chain} />],
            [t("common:mode.title"), t(`common:mode.${intent.mode}`)],
            [t("record.from"), <Address key="from" value={intent.fromAddress} whole />],
            [t("record.to"), <Address key="to" value={intent.toAddress} whole />],
            [t("common:payout.tag"), intent.toTag],
            [t("record.nonce"), intent.nonce],
            [t("record.merchant"), <MerchantLink key="merchant" of={intent} />],
            [t("queue.askedBy"), t(`askedBy.${intent.askedBy}`)],
            [
              t(`one.${sentAs(intent)}`),
              intent.payoutId === null ? null : (
                <Link key="sent" to={`/${sentAs(intent)}/${intent.payoutId}`}>
                  {intent.payoutId}
                </Link>
              ),
            ],
            [
              t("one.exchanges"),
              intent.txnId === null ? null : (
                <Link key="txn" to={`/exchanges/${intent.txnId}`}>
                  {intent.txnId}
                </Link>
              ),
            ],
          ]}
        />
      </Section>
      <Transactions of={intent} />
    </Page>
  );
}

type Refused = Pick<Schemas["FeeRaiseView"], "refusal" | "refusalCode">;

/** Why a wish of an operator's is not met: in the reader's language, and in the API's own sentence, which has figures. */
function Refusal({ of: { refusal, refusalCode } }: { readonly of: Refused }) {
  return <Said of="wishes" code={refusalCode ?? ""} words={refusal ?? ""} withOwn />;
}

/** In which list what it sends stands. */
function sentAs({ kind }: Intent): "payouts" | "refunds" | "withdrawals" {
  if (kind === "refund") return "refunds";
  return kind === "withdrawal" ? "withdrawals" : "payouts";
}

/** What it waits for, and the way to where somebody does something about it. */
function Waiting({ what }: { readonly what: NonNullable<Intent["waitsFor"]> }) {
  const { t } = useWords();
  const maySee = usePermitted("signer.read");
  const maySeeChains = usePermitted("chains.read");
  return (
    <>
      <WaitsFor what={what} withOwn />{" "}
      {maySee && what.code === WAITS_FOR_PERSON && <Link to="/signer">{t("nav.signer")}</Link>}
      {maySeeChains && what.code === WAITS_FOR_FILE && <Link to="/tokens">{t("nav.tokens")}</Link>}
      {maySeeChains && what.code === WAITS_FOR_ENDPOINT && <Link to="/chains">{t("nav.chains")}</Link>}
    </>
  );
}

function Transactions({ of: { chain, state, transactions } }: { readonly of: Intent }) {
  const { t } = useWords();
  const feeCoin = useFeeCoin();
  return (
    <Section title={t("record.transactions")} flush>
      <Signed
        transactions={transactions}
        hasFailed={state === "failed"}
        columns={[
          {
            id: "tries",
            title: t("queue.tries"),
            atEnd: true,
            cell: (one) => <span className="number">{one.tries}</span>,
          },
          {
            id: "fee",
            title: t("queue.fee"),
            atEnd: true,
            cell: (one) => {
              const fee = one.fee ?? one.maxFee;
              return fee === null ? <None /> : <Amount value={fee} token={feeCoin(chain)} />;
            },
          },
        ]}
      />
    </Section>
  );
}
