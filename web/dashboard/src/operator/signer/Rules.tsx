import type { ReactNode } from "react";

import { Amount } from "../../ui/Amount";
import { useChainName } from "../../ui/ChainName";
import { Empty } from "../../ui/Feedback";
import { None } from "../../ui/None";
import { showList } from "../../ui/format";
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
  const feeCoin = useFeeCoin();
  return (
    <Section title={t("signer.rules")} flush>
      {rules.length === 0 ? (
        <Empty title={t("signer.noRules")} />
      ) : (
        <Plain
          label={t("signer.rules")}
          rows={alike(rules, feeCoin)}
          rowKey={({ first, unit }) => `${first.setting} ${first.limit ?? ""} ${unit ?? ""}`}
          columns={[
            { id: "rule", title: t("signer.setting"), isWide: true, cell: ({ first }) => <Says rule={first} /> },
            { id: "name", title: t("signer.for"), cell: (group) => <Concerned group={group} /> },
            {
              id: "limit",
              title: t("signer.limit"),
              atEnd: true,
              cell: ({ first: { limit }, unit }) =>
                limit === null ? t("signer.none") : <Amount value={limit} token={unit} />,
            },
            { id: "used", title: t("signer.used"), atEnd: true, cell: (group) => <Used group={group} /> },
          ]}
        />
      )}
    </Section>
  );
}

/** Rules that say the same: one setting, with one limit in one unit. No limit and nothing at all are so in any unit. */
interface Group {
  readonly first: Rule;
  /** What the limit is counted in; undefined for a number alone, and where the rules have several. */
  readonly unit: string | undefined;
  readonly rules: readonly Rule[];
}

/** Put rules together that say the same of several coins, by setting and unit, and the lowest limit first. */
function alike(rules: readonly Rule[], feeCoin: (chain: string) => string | undefined): readonly Group[] {
  const groups = new Map<string, Group>();
  for (const rule of [...rules].sort((one, other) => one.name.localeCompare(other.name))) {
    const unit = unitOf(rule.name, feeCoin);
    const key = [rule.setting, rule.limit, ...(Number(rule.limit) === 0 ? [] : [unit])].join(" ");
    const known = groups.get(key) ?? { first: rule, unit, rules: [] };
    groups.set(key, {
      first: known.first,
      unit: known.unit === unit ? unit : undefined,
      rules: [...known.rules, rule],
    });
  }
  return [...groups.values()].sort(
    ({ first: one, unit }, { first: other, unit: otherUnit }) =>
      one.setting.localeCompare(other.setting) ||
      (unit ?? "").localeCompare(otherUnit ?? "") ||
      Number(one.limit) - Number(other.limit),
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

/** What a name means: of which coin or coins, and on which chain, by the chain's name where `chainName` has one. */
function meantBy(
  name: string,
  chainName: (chain: string) => string,
): { readonly coin: string; readonly where: string } {
  const [sold = coinOf(name), bought] = name.split(TO).map(coinOf);
  if (bought === undefined) return { coin: sold.symbol ?? "", where: chainName(sold.chain) };
  const of = ({ chain, symbol }: Coin) => symbol ?? chainName(chain);
  if (sold.chain === bought.chain) return { coin: `${of(sold)} → ${of(bought)}`, where: chainName(sold.chain) };
  const whole = (one: Coin) => `${of(one)} · ${chainName(one.chain)}`;
  return { coin: `${whole(sold)} → ${whole(bought)}`, where: "" };
}

/** Of which coins or chains rules are: a line for each coin, with the chains that have it. */
function Concerned({ group: { rules } }: { readonly group: Group }) {
  const { t, i18n } = useWords();
  const chainName = useChainName();
  const chainsOf = new Map<string, string[]>();
  for (const { name } of rules) {
    if (name === EACH_MERCHANT) return t("signer.eachMerchant");
    const { coin, where } = meantBy(name, chainName);
    chainsOf.set(coin, [...(chainsOf.get(coin) ?? []), where]);
  }
  return [...chainsOf].map(([coin, chains]) => {
    const where = showList(
      chains.filter((one) => one !== ""),
      i18n.language,
    );
    return (
      <div key={coin}>
        <bdi>{[coin, where].filter((one) => one !== "").join(" · ")}</bdi>
      </div>
    );
  });
}

/** What a rule is counted in: a coin, what a chain takes its fees in, one coin for another; undefined for a number. */
function unitOf(name: string, feeCoin: (chain: string) => string | undefined): string | undefined {
  if (name === EACH_MERCHANT) return undefined;
  const [sold = coinOf(name), bought] = name.split(TO).map(coinOf);
  if (bought !== undefined) return `${bought.symbol ?? bought.chain} / ${sold.symbol ?? sold.chain}`;
  return sold.symbol ?? feeCoin(sold.chain);
}

/** How much is used: of several coins each that is used at all, since each may use the whole of its limit. */
function Used({ group: { rules, unit } }: { readonly group: Group }): ReactNode {
  const chainName = useChainName();
  const feeCoin = useFeeCoin();
  const told = rules.flatMap(({ name, used }) => (used === null ? [] : [{ name, used }]));
  const [only] = told;
  if (only === undefined) return <None />;
  if (rules.length === 1) return <Amount value={only.used} token={unitOf(only.name, feeCoin)} />;
  const some = told.filter(({ used }) => Number(used) > 0);
  if (some.length === 0) return <Amount value="0" token={unit} />;
  return some.map(({ name, used }) => (
    <div key={name}>
      <Amount value={used} token={unitOf(name, feeCoin)} />{" "}
      <span className="muted">{meantBy(name, chainName).where}</span>
    </div>
  ));
}
