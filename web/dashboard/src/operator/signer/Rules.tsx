import type { ReactNode } from "react";

import { Amount } from "../../ui/Amount";
import { useChainName } from "../../ui/ChainName";
import { Empty } from "../../ui/Feedback";
import { InPieces } from "../../ui/InPieces";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { useWords, type Schemas } from "../api";
import { useFeeCoin } from "../queries";

type Rule = Schemas["SignerRule"];

/** What the signer calls a limit that holds for every merchant by itself. */
const EACH_MERCHANT = "each merchant";
const TO = " -> ";
const RULES = [
  "hourly_caps",
  "fresh_address_caps",
  "fresh_payouts_per_hour",
  "approval_limits",
  "fee_caps",
  "fee_hourly_caps",
  "floor_rates",
] as const;
const ASKED_IN = ["session", "key"] as const;

/** The rules that are in force: what each bounds, of what, and how much of it is used. */
export function Rules({ rules }: { readonly rules: readonly Rule[] }) {
  const { t } = useWords();
  return (
    <Section title={t("signer.rules")} flush>
      {rules.length === 0 ? (
        <Empty title={t("signer.noRules")} />
      ) : (
        <Plain
          label={t("signer.rules")}
          rows={[...rules].sort(
            (one, other) => one.setting.localeCompare(other.setting) || one.name.localeCompare(other.name),
          )}
          rowKey={(one) => `${one.setting} ${one.name}`}
          columns={[
            { id: "rule", title: t("signer.setting"), isWide: true, cell: (one) => <Says rule={one} /> },
            { id: "name", title: t("signer.for"), cell: (one) => <Concerned rule={one} /> },
            {
              id: "limit",
              title: t("signer.limit"),
              atEnd: true,
              cell: (one) => (one.limit === null ? t("signer.none") : <Measured rule={one} value={one.limit} />),
            },
            {
              id: "used",
              title: t("signer.used"),
              atEnd: true,
              cell: (one) => (one.used === null ? "–" : <Measured rule={one} value={one.used} />),
            },
          ]}
        />
      )}
    </Section>
  );
}

/** Return the parts of a setting's name: `session.hourly_caps` is of what is asked for in sessions. */
function partsOf(setting: string) {
  const [first = "", second] = setting.split(".");
  return {
    askedIn: second === undefined ? undefined : ASKED_IN.find((one) => one === first),
    rule: RULES.find((one) => one === (second ?? first)),
  };
}

/** What a rule bounds, in words; below them the setting's own name, by which it stands in the signer's file. */
function Says({ rule: { setting } }: { readonly rule: Rule }) {
  const { t } = useWords();
  const { askedIn, rule } = partsOf(setting);
  return (
    <>
      {rule !== undefined && <div>{t(`signer.says.${rule}`)}</div>}
      {askedIn !== undefined && <div className="muted">{t(`signer.askedIn.${askedIn}`)}</div>}
      <code className="muted">
        <InPieces text={`signer.${setting}`} />
      </code>
    </>
  );
}

interface Coin {
  readonly chain: string;
  /** Its symbol; undefined where a whole chain is meant. */
  readonly symbol: string | undefined;
}

function coinOf(name: string): Coin {
  const [chain = "", symbol] = name.split("/");
  return { chain, symbol };
}

/** Of which coin or chain a rule is. */
function Concerned({ rule: { name } }: { readonly rule: Rule }) {
  const { t } = useWords();
  const chainName = useChainName();
  if (name === EACH_MERCHANT) return t("signer.eachMerchant");
  const shown = ({ chain, symbol }: Coin) =>
    symbol === undefined ? chainName(chain) : `${symbol} · ${chainName(chain)}`;
  return name
    .split(TO)
    .map((one) => shown(coinOf(one)))
    .join(" → ");
}

/** How much that is: so much of a coin, of what a chain takes its fees in, of one coin for another, or a number. */
function Measured({ rule: { name }, value }: { readonly rule: Rule; readonly value: string }): ReactNode {
  const feeCoin = useFeeCoin();
  if (name === EACH_MERCHANT) return <Amount value={value} />;
  const [sold = "", bought] = name.split(TO);
  if (bought !== undefined) {
    return <Amount value={value} token={`${coinOf(bought).symbol ?? bought} / ${coinOf(sold).symbol ?? sold}`} />;
  }
  const { chain, symbol = feeCoin(chain) } = coinOf(sold);
  return <Amount value={value} token={symbol} />;
}
