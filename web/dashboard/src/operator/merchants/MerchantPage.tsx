import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { ChainName } from "../../ui/ChainName";
import { usePathPart } from "../../ui/address";
import { Amount } from "../../ui/Amount";
import { AttentionList } from "../../ui/Attention";
import { Copyable } from "../../ui/Copyable";
import { Empty } from "../../ui/Feedback";
import { numbers, showAmount } from "../../ui/format";
import { useMeaning } from "../../ui/Meaning";
import { None } from "../../ui/None";
import { Owed } from "../../ui/Owed";
import { Facts, Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryPage } from "../../ui/QueryView";
import { Chip } from "../../ui/Status";
import { Moment, When } from "../../ui/When";
import { useWords, type Schemas } from "../api";
import { useNav } from "../nav";

import { Limits } from "./Limits";
import { Members } from "./Members";
import { GrantCredits, MerchantActs } from "./MerchantActs";
import { merchantQuery, type MerchantWhole } from "./queries";
import { Standing } from "./Standing";
import { StatementButton } from "./StatementButton";

/** One merchant with its people, projects, money, limits, and what is the matter. */
export function MerchantPage() {
  const { t } = useWords();
  const query = useQuery(merchantQuery(usePathPart("merchantId")));
  return (
    <QueryPage title={t("nav.merchants")} query={query}>
      {(whole) => <Shown whole={whole} />}
    </QueryPage>
  );
}

function Shown({ whole }: { readonly whole: MerchantWhole }) {
  const { t } = useWords();
  const { merchant, plan } = whole;
  return (
    <Page
      title={merchant.name}
      lead={
        <span className="row">
          <Standing of={merchant} />
          <Copyable text={merchant.merchantId}>
            <code>{merchant.merchantId}</code>
          </Copyable>
          <When at={merchant.createdAt} />
        </span>
      }
      actions={<MerchantActs merchant={merchant} />}
    >
      <Section title={t("common:payment.details")}>
        <div className="stack">
          <Facts
            facts={[
              [t("common:signIn.email"), merchant.email],
              [t("merchants.plan"), plan.name],
              [
                t("merchants.lastActive"),
                merchant.lastActiveAt === null ? null : <Moment key="active" at={merchant.lastActiveAt} />,
              ],
              [
                t("merchants.suspendedSince"),
                merchant.suspendedAt === null ? null : <Moment key="suspended" at={merchant.suspendedAt} />,
              ],
              [t("act.reason"), merchant.suspensionReason],
            ]}
          />
          <p className="row">
            {(
              [
                "payments",
                "deposits",
                "payouts",
                "refunds",
                "withdrawals",
                "exchanges",
                "accounts",
                "trackers",
              ] as const
            ).map((kind) => (
              <Link key={kind} to={`/${kind}`} search={{ merchant: merchant.merchantId }}>
                {t(`nav.${kind}`)}
              </Link>
            ))}
            <Link to="/uncollected" search={{ merchantId: merchant.merchantId }}>
              {t("nav.uncollected")}
            </Link>
            <Link to="/webhooks" search={{ merchantId: merchant.merchantId }}>
              {t("nav.webhooks")}
            </Link>
            <Link to="/audit" search={{ merchant: merchant.merchantId }}>
              {t("nav.audit")}
            </Link>
          </p>
        </div>
      </Section>
      {whole.modes.map((standing) => (
        <Mode key={standing.mode} merchantId={merchant.merchantId} standing={standing} />
      ))}
      <Limits merchantId={merchant.merchantId} limits={whole.limits} version={whole.limitsVersion} />
      <Section title={t("merchants.projects")} flush>
        {whole.projects.length === 0 ? (
          <Empty title={t("merchants.noProjects")} />
        ) : (
          <Plain
            label={t("merchants.projects")}
            rows={whole.projects}
            rowKey={(one) => one.projectId}
            columns={[
              { id: "name", title: t("common:projects.name"), cell: (one) => <b>{one.name}</b> },
              { id: "mode", title: t("common:mode.title"), cell: (one) => t(`common:mode.${one.mode}`) },
              {
                id: "state",
                title: t("record.state"),
                cell: (one) => (
                  <Chip tone={one.isActive ? "good" : "calm"}>
                    {t(one.isActive ? "common:status.active" : "common:status.inactive")}
                  </Chip>
                ),
              },
              { id: "id", title: t("merchants.id"), cell: (one) => <code>{one.projectId}</code> },
              { id: "since", title: t("common:payments.created"), cell: (one) => <When at={one.createdAt} /> },
            ]}
          />
        )}
      </Section>
      <Members members={whole.members} />
    </Page>
  );
}

type Balance = Schemas["ModeStanding"]["balances"][number];

interface ModeProps {
  readonly merchantId: string;
  readonly standing: Schemas["ModeStanding"];
}

function Mode({ merchantId, standing }: ModeProps) {
  const { t, i18n } = useWords();
  const { mode, attention, balances, credits, used } = standing;
  const meaning = useMeaning();
  const number = numbers(i18n.language);
  // This is the merchant: there is no way to look for.
  const nav = useNav().map(({ items }) => ({ items: items.filter(({ to }) => to !== "/merchants") }));
  const owesAny = balances.some((one) => one.receivable != null);
  return (
    <Section
      title={t(`common:mode.${mode}`)}
      actions={
        <>
          <StatementButton merchantId={merchantId} mode={mode} />
          <GrantCredits merchantId={merchantId} mode={mode} />
        </>
      }
    >
      <div className="stack">
        {attention.length > 0 && <AttentionList attention={attention} nav={nav} mode={mode} merchantId={merchantId} />}
        <Facts
          facts={[
            [t("merchants.credits"), showAmount(String(credits.balance), i18n.language).text],
            [t("merchants.usedThisMonth"), number.format(used.cpt)],
            [t("merchants.trackers"), `${number.format(used.webhooks)} · ${number.format(used.addresses)}`],
          ]}
        />
        {balances.length > 0 && (
          <Plain
            label={t("merchants.balances")}
            rows={balances}
            rowKey={(one) => `${one.chain} ${one.contractAddress ?? one.token}`}
            columns={[
              { id: "token", title: t("common:payments.token"), cell: (one) => <b>{one.token}</b> },
              { id: "chain", title: t("record.chain"), cell: (one) => <ChainName of={one.chain} /> },
              {
                id: "available",
                title: t("merchants.available"),
                atEnd: true,
                cell: (one) => <Amount value={one.available} token={one.token} />,
              },
              {
                id: "pending",
                title: t("common:status.pending"),
                atEnd: true,
                cell: (one) => <Amount value={one.pending} token={one.token} />,
              },
              {
                id: "held",
                title: t("merchants.held"),
                atEnd: true,
                cell: (one) => <Amount value={one.held} token={one.token} />,
              },
              // Only where a reorganization took back what was spent already.
              ...(owesAny
                ? [
                    {
                      id: "owed",
                      title: meaning("balance", "receivable"),
                      atEnd: true,
                      cell: (one: Balance) =>
                        one.receivable == null ? <None /> : <Owed receivable={one.receivable} token={one.token} />,
                    },
                  ]
                : []),
            ]}
          />
        )}
      </div>
    </Section>
  );
}
