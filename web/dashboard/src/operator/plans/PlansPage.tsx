import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Fiat } from "../../ui/Amount";
import { useChainName } from "../../ui/ChainName";
import { ChangedMeanwhile, useBegun, type Told } from "../../ui/Changed";
import { Empty } from "../../ui/Feedback";
import { numbers, showFiat, showList } from "../../ui/format";
import { None } from "../../ui/None";
import { Facts, Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Chip } from "../../ui/Status";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { usePermitted } from "../queries";
import { RowActs, type RowAct } from "../RowActs";

import { Given } from "./Given";
import { BLANK, PlanForm, written, type Draft } from "./PlanForm";
import { plansQuery, type Plan } from "./queries";

/** What merchants can have, and who has what they were given no other. */
export function PlansPage() {
  const { t } = useWords();
  const mayChange = usePermitted("plans.change");
  const query = useQuery(plansQuery);
  return (
    <Page title={t("nav.plans")} lead={t("plans.lead")} actions={mayChange && <MakeButton />}>
      <QueryView query={query} lines={8}>
        {({ defaultPlan, plans }) => (
          <>
            <Section title={t("plans.default")}>
              <Allowed plan={defaultPlan} />
            </Section>
            <Section title={t("nav.plans")} flush>
              {plans.length === 0 ? (
                <Empty title={t("plans.none")} />
              ) : (
                <Plain
                  label={t("nav.plans")}
                  rows={plans}
                  rowKey={(one) => one.planId}
                  columns={[
                    { id: "name", title: t("record.name"), cell: (one) => <Name plan={one} /> },
                    {
                      id: "trackers",
                      title: t("plans.maxWebhooks"),
                      atEnd: true,
                      cell: (one) => <Count value={one.hasTracker ? one.maxWebhooks : null} />,
                    },
                    {
                      id: "addresses",
                      title: t("plans.maxAddresses"),
                      atEnd: true,
                      cell: (one) => <Count value={one.hasTracker ? one.maxAddresses : null} />,
                    },
                    {
                      id: "requests",
                      title: t("plans.requestsPerMinute"),
                      atEnd: true,
                      cell: (one) => <Count value={one.requestsPerMinute} />,
                    },
                    {
                      id: "credits",
                      title: t("plans.cptPerMonth"),
                      atEnd: true,
                      cell: (one) => <Count value={one.cptPerMonth} />,
                    },
                    {
                      id: "price",
                      title: t("plans.priceUsd"),
                      atEnd: true,
                      cell: (one) => (one.priceUsd === null ? <None /> : <Fiat value={one.priceUsd} currency="usd" />),
                    },
                    {
                      id: "merchants",
                      title: t("nav.merchants"),
                      atEnd: true,
                      cell: (one) => <Given plan={one} />,
                    },
                    { id: "acts", title: "", atEnd: true, cell: (one) => mayChange && <Acts plan={one} /> },
                  ]}
                />
              )}
            </Section>
          </>
        )}
      </QueryView>
    </Page>
  );
}

function Count({ value }: { readonly value: number | null }) {
  const { i18n } = useWords();
  return value === null ? <None /> : <span className="number">{numbers(i18n.language).format(value)}</span>;
}

function Name({ plan }: { readonly plan: Plan }) {
  const { t } = useWords();
  return (
    <span className="row">
      <b>{plan.name}</b>
      {plan.isDefault && <Chip tone="good">{t("plans.isDefault")}</Chip>}
      {plan.archivedAt !== null && <Chip tone="calm">{t("plans.archived")}</Chip>}
      {!plan.isPublic && <Chip tone="wait">{t("plans.hidden")}</Chip>}
    </span>
  );
}

/** What merchants have who were given no plan: the built-in one, until another is made the default. */
function Allowed({ plan }: { readonly plan: Schemas["PlanOffer"] }) {
  const { t, i18n } = useWords();
  const chainName = useChainName();
  return (
    <Facts
      facts={[
        [t("record.name"), plan.name],
        [t("plans.hasTracker"), t(plan.hasTracker ? "settings.on" : "settings.off")],
        [
          t("plans.chains"),
          plan.chains === null ? t("plans.everyChain") : showList(plan.chains.map(chainName), i18n.language),
        ],
        [t("plans.maxWebhooks"), <Count key="webhooks" value={plan.maxWebhooks} />],
        [t("plans.maxAddresses"), <Count key="addresses" value={plan.maxAddresses} />],
        [t("plans.requestsPerMinute"), <Count key="requests" value={plan.requestsPerMinute} />],
        [t("plans.cptPerMonth"), <Count key="credits" value={plan.cptPerMonth} />],
      ]}
    />
  );
}

function MakeButton() {
  const { t } = useWords();
  const client = useQueryClient();
  const [draft, setDraft] = useState(BLANK);
  return (
    <ActButton
      act={t("plans.make")}
      title={t("plans.make")}
      onOpen={() => {
        setDraft(BLANK);
      }}
      onConfirm={async () => {
        await unwrap(api.POST("/api/admin/plans", { body: written(draft) }));
        await client.invalidateQueries(plansQuery);
      }}
    >
      <PlanForm draft={draft} onDraft={setDraft} />
    </ActButton>
  );
}

/** What can be done about a plan; none is ever deleted, as somebody may have it. */
function Acts({ plan }: { readonly plan: Plan }) {
  const { t } = useWords();
  const client = useQueryClient();
  // As it was when the dialog opened: the list is read again meanwhile, and what others change then is not theirs to undo.
  const [before, setBefore] = useState(() => draftOf(plan));
  const [draft, setDraft] = useState(before);
  const isArchived = plan.archivedAt !== null;
  const { name } = plan;

  const others = useBegun({
    now: plan,
    told: usePlanTold(),
    readAgain: async () => {
      const { plans } = await client.query({ ...plansQuery, staleTime: 0 });
      return plans.find((one) => one.planId === plan.planId) ?? plan;
    },
    // What is typed stays; everything else is as others have it now.
    onChanged: (fresh) => {
      setBefore(draftOf(fresh));
      setDraft({ ...draftOf(fresh), ...typed(before, draft) });
    },
  });

  async function patch(body: Schemas["ChangePlan"]): Promise<void> {
    const params = { path: { planId: plan.planId } };
    await others.send(({ version }) =>
      unwrap(api.PATCH("/api/admin/plans/{planId}", { params, body: { version, ...body } })),
    );
    await client.invalidateQueries(plansQuery);
  }

  const change: RowAct = {
    id: "change",
    act: t("plans.change"),
    title: t("plans.changeTitle", { name }),
    onOpen: () => {
      others.begin();
      setBefore(draftOf(plan));
      setDraft(draftOf(plan));
    },
    onConfirm: () => patch(changed(before, draft)),
    children: (
      <>
        <p>{plan.isDefault ? t("plans.changeDefaultWords") : t("plans.changeWords", { count: plan.merchants })}</p>
        <ChangedMeanwhile changed={others.changed} />
        <PlanForm draft={draft} onDraft={setDraft} />
      </>
    ),
  };
  const makeDefault: RowAct = {
    id: "default",
    act: t("plans.makeDefault"),
    title: t("plans.makeDefaultTitle", { name }),
    onOpen: others.begin,
    onConfirm: () => patch({ isDefault: true }),
    children: (
      <>
        <p>{t("plans.makeDefaultWords")}</p>
        <ChangedMeanwhile changed={others.changed} />
      </>
    ),
  };
  const archive: RowAct = {
    id: "archive",
    isDangerous: !isArchived,
    act: t(isArchived ? "plans.bringBack" : "plans.archive"),
    title: t(isArchived ? "plans.bringBackTitle" : "plans.archiveTitle", { name }),
    onOpen: others.begin,
    onConfirm: () => patch({ archived: !isArchived }),
    children: (
      <>
        <ChangedMeanwhile changed={others.changed} />
        <p>{t(isArchived ? "plans.bringBackWords" : "plans.archiveWords")}</p>
      </>
    ),
  };
  const acts = [change, ...(isArchived ? [] : [makeDefault]), archive];
  return <RowActs of={name} acts={plan.isDefault ? [change] : acts} />;
}

/** Return what tells of a plan, as the page names and shows it. */
function usePlanTold(): (plan: Plan) => readonly Told[] {
  const { t, i18n } = useWords();
  const chainName = useChainName();
  const number = numbers(i18n.language);
  const count = (value: number | null) => (value === null ? "\u2013" : number.format(value));
  const isOn = (value: boolean) => t(value ? "settings.on" : "settings.off");
  return (plan) => {
    const { name, hasTracker, chains, priceUsd, isPublic } = plan;
    const counts = (["maxWebhooks", "maxAddresses", "requestsPerMinute", "cptPerMonth"] as const).map(
      (one) => [one, t(`plans.${one}`), plan[one], count(plan[one])] as const,
    );
    const told: readonly (readonly [key: string, title: string, value: unknown, text: string])[] = [
      ["name", t("record.name"), name, name],
      ["hasTracker", t("plans.hasTracker"), hasTracker, isOn(hasTracker)],
      [
        "chains",
        t("plans.chains"),
        chains,
        chains === null ? t("plans.everyChain") : showList(chains.map(chainName), i18n.language),
      ],
      ...counts,
      [
        "priceUsd",
        t("plans.priceUsd"),
        priceUsd,
        priceUsd === null ? "\u2013" : showFiat(priceUsd, "usd", i18n.language),
      ],
      ["isPublic", t("plans.isPublic"), isPublic, isOn(isPublic)],
    ];
    return told.map(([key, title, value, text]) => ({ key, title, value, text }));
  };
}

function draftOf(plan: Plan): Draft {
  const names = Object.keys(BLANK) as (keyof Draft)[];
  return Object.fromEntries(names.map((name) => [name, plan[name]])) as unknown as Draft;
}

/** Return what is different: what somebody else changed meanwhile stays. */
function changed(before: Draft, now: Draft): Schemas["ChangePlan"] {
  return different(before, written(now));
}

function typed(before: Draft, now: Draft): Partial<Draft> {
  return different(before, now);
}

function different(before: Draft, now: object): object {
  return Object.fromEntries(Object.entries(now).filter(([name, value]) => value !== before[name as keyof Draft]));
}
