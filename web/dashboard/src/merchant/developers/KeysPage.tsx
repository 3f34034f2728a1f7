import { Button, Checkbox } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { momentOf } from "../../ui/days";
import { showList } from "../../ui/format";
import { api, unwrap } from "../api";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { Empty, ErrorNote } from "../../ui/Feedback";
import { None } from "../../ui/None";
import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Secret } from "../../ui/Secret";
import { Text } from "../../ui/Text";
import { useAct } from "../../ui/useAct";
import { Moment, When } from "../../ui/When";
import { usePermitted, useProjectId } from "../project";
import type { Schemas } from "../queries";

import { keysQuery } from "./queries";

const SCOPES = ["read", "payments", "refunds", "payouts", "exchange", "accounts", "trackers"] as const;
type Scope = (typeof SCOPES)[number];
type Key = Schemas["KeyView"];

/** What programs sign in with: each with what it needs and no more. */
export function KeysPage() {
  const { t, i18n } = useTranslation();
  const projectId = useProjectId();
  const query = useQuery(keysQuery(projectId));
  const mayIssue = usePermitted("keys");
  return (
    <Page title={t("keys.title")} lead={t("keys.lead")}>
      <Section title={t("keys.list")} flush>
        <QueryView query={query}>
          {(keys) =>
            keys.length === 0 ? (
              <Empty title={t("keys.none")} />
            ) : (
              <Plain
                label={t("keys.list")}
                rows={keys}
                rowKey={(one) => one.keyId}
                columns={[
                  { id: "name", title: t("projects.name"), cell: (one) => <b>{one.name}</b> },
                  { id: "hint", title: t("keys.key"), cell: (one) => <code>{one.hint}</code> },
                  {
                    id: "scopes",
                    title: t("keys.scopes"),
                    cell: (one) =>
                      showList(
                        one.scopes.map((scope) => t(`scope.${scope}`)),
                        i18n.language,
                      ),
                  },
                  {
                    id: "expires",
                    title: t("payment.expires"),
                    cell: (one) => (one.expiresAt === null ? t("keys.never") : <Moment at={one.expiresAt} />),
                  },
                  {
                    id: "from",
                    title: t("keys.from"),
                    cell: (one) =>
                      one.allowedIps.length === 0 ? t("keys.anywhere") : <code>{one.allowedIps.join(" ")}</code>,
                  },
                  {
                    id: "used",
                    title: t("keys.used"),
                    cell: (one) => (one.lastUsedAt === null ? <None /> : <When at={one.lastUsedAt} />),
                  },
                  {
                    id: "revoke",
                    title: "",
                    atEnd: true,
                    cell: (one) => (mayIssue ? <Revoke projectId={projectId} apiKey={one} /> : null),
                  },
                ]}
              />
            )
          }
        </QueryView>
      </Section>
      {mayIssue && <NewKey projectId={projectId} />}
    </Page>
  );
}

function NewKey({ projectId }: { readonly projectId: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["read", "payments"]);
  const [expires, setExpires] = useState("");
  const [allowed, setAllowed] = useState("");
  const [issued, setIssued] = useState<string | null>(null);
  const issue = useAct(async () => {
    setIssued(null); // the last one, which may do something else, must not be taken for the next
    const expiresAt = momentOf(expires);
    const allowedIps = allowed.split(/[\s,]+/).filter(Boolean);
    const body = {
      name,
      scopes: [...scopes],
      ...(expiresAt === null ? {} : { expiresAt }),
      ...(allowedIps.length === 0 ? {} : { allowedIps }),
    };
    const params = { path: { projectId } };
    setIssued((await unwrap(api.POST("/api/merchant/projects/{projectId}/api-keys", { params, body }))).apiKey);
    setName("");
    setExpires("");
    setAllowed("");
    void client.invalidateQueries(keysQuery(projectId));
  });
  return (
    <Section title={t("keys.new")}>
      <form className="stack" onSubmit={issue.submit}>
        <Text label={t("projects.name")} description={t("keys.nameWords")} required value={name} onText={setName} />
        <Checkbox.Group
          label={t("keys.scopes")}
          value={[...scopes]}
          onChange={(values) => {
            setScopes(SCOPES.filter((one) => values.includes(one)));
          }}
        >
          <div className="choices">
            {SCOPES.map((one) => (
              <Checkbox key={one} value={one} label={t(`scope.${one}`)} />
            ))}
          </div>
        </Checkbox.Group>
        <Text
          type="datetime-local"
          label={t("payment.expires")}
          description={t("keys.expiresWords")}
          value={expires}
          error={issue.error?.of("expiresAt")}
          onText={setExpires}
        />
        <Text
          label={t("keys.from")}
          description={t("keys.fromWords")}
          dir="ltr"
          placeholder="203.0.113.7, 10.0.0.0/8"
          autoComplete="off"
          spellCheck={false}
          value={allowed}
          error={issue.error?.of("allowedIps")}
          onText={setAllowed}
        />
        {scopes.includes("payouts") && <p role="note">{t("keys.payoutsWords")}</p>}
        {issue.error !== null && <ErrorNote error={issue.error} />}
        <div className="row">
          <Button type="submit" loading={issue.isRunning} disabled={scopes.length === 0}>
            {t("keys.issue")}
          </Button>
        </div>
        {issued !== null && (
          <div className="stack">
            <p role="alert">{t("keys.once")}</p>
            <Secret text={issued} label={t("keys.copy")} />
          </div>
        )}
      </form>
    </Section>
  );
}

function Revoke({ projectId, apiKey }: { readonly projectId: string; readonly apiKey: Key }) {
  const { t } = useTranslation();
  const client = useQueryClient();

  async function revoke(): Promise<void> {
    const params = { path: { projectId, keyId: apiKey.keyId } };
    await unwrap(api.DELETE("/api/merchant/projects/{projectId}/api-keys/{keyId}", { params }));
    void client.invalidateQueries(keysQuery(projectId));
  }

  return (
    <ConfirmButton act={t("keys.revoke")} title={t("keys.revokeTitle", { name: apiKey.name })} onConfirm={revoke}>
      <p>{t("keys.revokeWords")}</p>
    </ConfirmButton>
  );
}
