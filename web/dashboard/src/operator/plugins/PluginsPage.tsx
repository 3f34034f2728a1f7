import { useQuery } from "@tanstack/react-query";

import { useChainName } from "../../ui/ChainName";
import { Empty } from "../../ui/Feedback";
import { None } from "../../ui/None";
import { showList } from "../../ui/format";
import { useMeaning } from "../../ui/Meaning";
import { Facts, Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Chip, type Tone } from "../../ui/Status";
import { api, unwrap, useWords, type Schemas } from "../api";

type Plugin = Schemas["PluginView"];

const TONES = { loaded: "good", failing: "bad", disabled: "calm" } as const satisfies Record<Plugin["state"], Tone>;
const POLL_MS = 10_000;

/** What is installed, what it brings, how it is set, and whether its chains can be read. */
export function PluginsPage() {
  const { t, i18n } = useWords();
  const chainName = useChainName();
  const meaning = useMeaning();
  const brings = (kinds: readonly string[]) =>
    showList(
      kinds.map((kind) => meaning("brings", kind)),
      i18n.language,
    ) || <None />;
  const query = useQuery({
    queryKey: ["plugins"],
    refetchInterval: POLL_MS,
    queryFn: ({ signal }) => unwrap(api.GET("/api/admin/plugins", { signal })),
  });
  return (
    <Page title={t("nav.plugins")} lead={t("plugins.lead")}>
      <QueryView query={query} lines={8}>
        {({ plugins, contractVersion }) => (
          <Section title={t("plugins.contract", { version: contractVersion })} flush>
            {plugins.length === 0 ? (
              <Empty title={t("plugins.none")} />
            ) : (
              <Plain
                label={t("nav.plugins")}
                rows={plugins}
                rowKey={(one) => one.name}
                columns={[
                  { id: "name", title: t("record.name"), cell: (one) => <b>{one.name}</b> },
                  {
                    id: "state",
                    title: t("record.state"),
                    cell: (one) => <Chip tone={TONES[one.state]}>{t(`plugins.states.${one.state}`)}</Chip>,
                  },
                  { id: "version", title: t("plugins.version"), cell: (one) => <Version plugin={one} /> },
                  { id: "kinds", title: t("plugins.brings"), cell: (one) => brings(one.kinds) },
                  {
                    id: "chains",
                    title: t("nav.chains"),
                    cell: (one) => showList(one.chains.map(chainName), i18n.language) || <None />,
                  },
                  { id: "problems", title: t("chains.problem"), cell: (one) => <Problems plugin={one} /> },
                  { id: "settings", title: t("nav.settings"), cell: (one) => <Settings plugin={one} /> },
                ]}
              />
            )}
          </Section>
        )}
      </QueryView>
    </Page>
  );
}

function Version({ plugin }: { readonly plugin: Plugin }) {
  return (
    <>
      <div className="number">{plugin.version ?? <None />}</div>
      <div className="muted">{plugin.distribution}</div>
    </>
  );
}

function Problems({ plugin }: { readonly plugin: Plugin }) {
  if (plugin.problems.length === 0) return <None />;
  return (
    <ul>
      {plugin.problems.map((one) => (
        <li key={one}>{one}</li>
      ))}
    </ul>
  );
}

/** What differs from the defaults. Of a text is only told that it is set, as it may be a key. */
function Settings({ plugin }: { readonly plugin: Plugin }) {
  const { t } = useWords();
  if (plugin.settings.length === 0) return <None />;
  return (
    <details>
      <summary>{t("plugins.set", { count: plugin.settings.length })}</summary>
      <Facts facts={plugin.settings.map((one) => [one.name, one.value ?? t("plugins.secret")])} />
    </details>
  );
}
