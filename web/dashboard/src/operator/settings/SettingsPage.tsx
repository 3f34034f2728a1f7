import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Text } from "../../ui/Text";
import { When } from "../../ui/When";
import { ActButton } from "../ActButton";
import { ChangedMeanwhile, useBegun } from "../Changed";
import { api, unwrap, useWords } from "../api";
import { usePermitted } from "../queries";

import { GROUPS, type Field, type Settings } from "./fields";
import { decided, settingsQuery } from "./queries";
import { TABLES } from "./tables";
import { TableSection } from "./TableSection";

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
            {GROUPS.map((group) => (
              <Section key={group.title} title={t(`settings.${group.title}`)} flush>
                <Plain
                  label={t(`settings.${group.title}`)}
                  rows={group.fields}
                  rowKey={(one) => one.name}
                  columns={[
                    { id: "name", title: t("signer.setting"), cell: (one) => <Name field={one} /> },
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
            <Derived minimums={settings.derivedMinimums} />
          </>
        )}
      </QueryView>
    </Page>
  );
}

interface DerivedProps {
  readonly minimums: Settings["derivedMinimums"];
}

/** What a payout must be worth where no limit says a minimum: made of its fee, and of nothing that is decided here. */
function Derived({ minimums }: DerivedProps) {
  const { t } = useWords();
  const rows = Object.entries(minimums);
  if (rows.length === 0) return null;
  return (
    <Section title={t("settings.derived")} flush>
      <Plain
        label={t("settings.derived")}
        rows={rows}
        rowKey={([coin]) => coin}
        columns={[
          { id: "coin", title: t("merchants.coin"), cell: ([coin]) => <b>{coin}</b> },
          {
            id: "minimum",
            title: t("column.minimum"),
            atEnd: true,
            cell: ([, one]) => <span className="number">{one.minimum}</span>,
          },
          {
            id: "fee",
            title: t("queue.fee"),
            atEnd: true,
            cell: ([, one]) => <span className="number">{one.fee}</span>,
          },
          { id: "at", title: t("gas.checked"), cell: ([, one]) => <When at={one.derivedAt} /> },
        ]}
      />
    </Section>
  );
}

interface FieldProps {
  readonly field: Field;
  readonly settings: Settings;
}

function useFieldWords(field: Field): string {
  const { t } = useWords();
  return t(`setting.${field.name}` as "setting.payoutEnabled");
}

function Name({ field }: { readonly field: Field }) {
  const words = useFieldWords(field);
  return (
    <>
      <code>{field.name}</code>
      <div className="muted">{words}</div>
    </>
  );
}

function Shown({ field, settings }: FieldProps) {
  const { t } = useWords();
  const value = field.read(settings);
  if (typeof value === "boolean") return <b>{t(value ? "settings.on" : "settings.off")}</b>;
  return <b className="number">{value}</b>;
}

/** Changes one setting, and says from what to what. */
function Change({ field, settings }: FieldProps) {
  const { t } = useWords();
  const words = useFieldWords(field);
  const client = useQueryClient();
  const now = field.read(settings);
  const [typed, setTyped] = useState(String(now));
  const isSwitch = typeof now === "boolean";
  const act = isSwitch ? t(now ? "settings.switchOff" : "settings.switchOn") : t("settings.change");
  const { begin, send, changed } = useBegun({
    now: settings,
    shown: decided,
    readAgain: () => client.query({ ...settingsQuery, staleTime: 0 }),
  });
  return (
    <ActButton
      isSmall
      isDangerous={isSwitch && now}
      act={act}
      title={field.name}
      onOpen={() => {
        begin();
        setTyped(String(now));
      }}
      onConfirm={async () => {
        const value = isSwitch ? !now : field.kind === "whole" ? Number(typed) : typed.trim();
        await send(({ version }) =>
          unwrap(api.PUT("/api/admin/settings", { body: { version, ...field.patch(value) } })),
        );
        await client.invalidateQueries(settingsQuery);
      }}
    >
      <p>{words}</p>
      <ChangedMeanwhile changed={changed} />
      {!isSwitch && (
        <Text
          label={t("settings.newValue", { now: String(now) })}
          required
          autoComplete="off"
          inputMode={field.kind === "whole" ? "numeric" : "decimal"}
          pattern={field.kind === "whole" ? "-?[0-9]+" : "[0-9]+([.][0-9]+)?"}
          value={typed}
          onText={setTyped}
        />
      )}
    </ActButton>
  );
}
