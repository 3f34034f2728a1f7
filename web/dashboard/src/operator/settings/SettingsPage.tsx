import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Amount } from "../../ui/Amount";
import { ChangedMeanwhile, useBegun } from "../../ui/Changed";
import { Contents, Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Text } from "../../ui/Text";
import { toUnits } from "../../ui/units";
import { When } from "../../ui/When";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords } from "../api";
import { useFeeCoin, usePermitted } from "../queries";

import { GROUPS, type Field, type Settings, type Value } from "./fields";
import { settingsQuery } from "./queries";
import { PERCENT_DECIMALS, typedOf, useShown } from "./shown";
import { TABLES } from "./tables";
import { TableSection } from "./TableSection";
import { useTold } from "./useTold";

/** What is decided while the gateway runs, each setting with what it means. */
export function SettingsPage() {
  const { t } = useWords();
  const query = useQuery(settingsQuery);
  const mayChange = usePermitted("settings.change");
  return (
    <Page title={t("nav.settings")} lead={t("settings.lead")}>
      <QueryView query={query} lines={10}>
        {(settings) => (
          <>
            <Contents
              label={t("settings.contents")}
              parts={[
                ...GROUPS.map(({ title }) => ({ id: title, title: t(`settings.${title}`) })),
                ...TABLES.map(({ name }) => ({ id: name, title: t(`table.${name}`) })),
                ...(hasDerived(settings) ? [{ id: DERIVED, title: t("settings.derived") }] : []),
              ]}
            />
            {GROUPS.map((group) => (
              <Section key={group.title} id={group.title} title={t(`settings.${group.title}`)} flush>
                <Plain
                  label={t(`settings.${group.title}`)}
                  rows={group.fields}
                  rowKey={(one) => one.name}
                  columns={[
                    { id: "name", title: t("settings.setting"), isWide: true, cell: (one) => <Name field={one} /> },
                    {
                      id: "value",
                      title: t("settings.value"),
                      atEnd: true,
                      cell: (one) => <Shown field={one} settings={settings} />,
                    },
                    {
                      id: "acts",
                      title: "",
                      atEnd: true,
                      cell: (one) => mayChange && <Change field={one} settings={settings} />,
                    },
                  ]}
                />
              </Section>
            ))}
            {TABLES.map((table) => (
              <TableSection key={table.name} table={table} settings={settings} />
            ))}
            {hasDerived(settings) && <Derived minimums={settings.derivedMinimums} />}
          </>
        )}
      </QueryView>
    </Page>
  );
}

const DERIVED = "derived";

function hasDerived({ derivedMinimums }: Settings): boolean {
  return Object.keys(derivedMinimums).length > 0;
}

interface DerivedProps {
  readonly minimums: Settings["derivedMinimums"];
}

/** What a payout must be worth where no limit says a minimum: made of its fee, and of nothing that is decided here. */
function Derived({ minimums }: DerivedProps) {
  const { t } = useWords();
  const feeCoin = useFeeCoin();
  return (
    <Section id={DERIVED} title={t("settings.derived")} flush>
      <Plain
        label={t("settings.derived")}
        rows={Object.entries(minimums)}
        rowKey={([coin]) => coin}
        columns={[
          { id: "coin", title: t("merchants.coin"), cell: ([coin]) => <b>{coin}</b> },
          {
            id: "minimum",
            title: t("column.minimum"),
            atEnd: true,
            cell: ([coin, one]) => <Amount value={one.minimum} token={partsOf(coin).token} />,
          },
          {
            id: "fee",
            title: t("queue.fee"),
            atEnd: true,
            cell: ([coin, one]) => <Amount value={one.fee} token={feeCoin(partsOf(coin).chain)} />,
          },
          { id: "at", title: t("gas.checked"), cell: ([, one]) => <When at={one.derivedAt} /> },
        ]}
      />
    </Section>
  );
}

/** Return a coin's chain and token, as settings name both at once: `ethereum/USDT`. */
function partsOf(coin: string): { readonly chain: string; readonly token: string } {
  const [chain = "", token = ""] = coin.split("/");
  return { chain, token };
}

interface FieldProps {
  readonly field: Field;
  readonly settings: Settings;
}

function useFieldWords(field: Field): { title: string; words: string } {
  const { t } = useWords();
  return {
    title: t(`settingName.${field.name}` as "settingName.payoutEnabled"),
    words: t(`setting.${field.name}` as "setting.payoutEnabled"),
  };
}

function Name({ field }: { readonly field: Field }) {
  const { title, words } = useFieldWords(field);
  return (
    <>
      <b>{title}</b> <code className="muted">{field.name}</code>
      <div className="muted">{words}</div>
    </>
  );
}

function Shown({ field, settings }: FieldProps) {
  const text = useShown()(field, field.read(settings));
  // Money is written from left to right among Arabic words, too.
  return <b className="number">{field.unit === "usd" ? <bdi dir="ltr">{text}</bdi> : text}</b>;
}

const PATTERNS = {
  whole: "-?[0-9]+",
  decimal: "[0-9]+([.][0-9]+)?",
  // Two decimals at most: a comma is no thousand.
  percent: "[0-9]+([.,][0-9]{1,2})?",
} as const;

function valueOf(kind: Field["kind"], typed: string): Value {
  if (kind === "percent") return Number(toUnits(typed.replace(",", "."), PERCENT_DECIMALS) ?? "0");
  return kind === "whole" ? Number(typed) : typed;
}

/** Changes one setting, and says from what to what. */
function Change({ field, settings }: FieldProps) {
  const { t } = useWords();
  const { title, words } = useFieldWords(field);
  const shown = useShown();
  const client = useQueryClient();
  const now = field.read(settings);
  const { kind } = field;
  const [typed, setTyped] = useState("");
  const isSwitch = typeof now === "boolean";
  const act = isSwitch ? t(now ? "settings.switchOff" : "settings.switchOn") : t("settings.change");
  const { begin, send, changed } = useBegun({
    now: settings,
    told: useTold(),
    readAgain: () => client.query({ ...settingsQuery, staleTime: 0 }),
  });
  return (
    <ActButton
      isSmall
      isDangerous={isSwitch && now}
      act={act}
      title={title}
      onOpen={() => {
        begin();
        setTyped(typedOf(kind, now));
      }}
      onConfirm={async () => {
        const value = isSwitch ? !now : valueOf(kind, typed.trim());
        await send(({ version }) =>
          unwrap(api.PUT("/api/admin/settings", { body: { version, ...field.patch(value) } })),
        );
        await client.invalidateQueries(settingsQuery);
      }}
    >
      <p>{words}</p>
      <ChangedMeanwhile changed={changed} />
      {!isSwitch && kind !== "switch" && (
        <Text
          label={t("settings.newValue", { now: shown(field, now) })}
          required
          autoComplete="off"
          inputMode={kind === "whole" ? "numeric" : "decimal"}
          pattern={PATTERNS[kind]}
          rightSection={kind === "percent" ? "%" : null}
          value={typed}
          onText={setTyped}
        />
      )}
    </ActButton>
  );
}
