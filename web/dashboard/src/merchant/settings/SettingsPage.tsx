import { Button, NumberInput, Switch } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { once } from "../../api/once";
import { api, unwrap } from "../api";
import { Confirm } from "../../ui/Confirm";
import { ErrorNote } from "../../ui/Feedback";
import { numbers } from "../../ui/format";
import { None } from "../../ui/None";
import { Facts, Page, Section } from "../../ui/Page";
import { Text } from "../../ui/Text";
import { useAct } from "../../ui/useAct";
import { RotateSecret } from "../developers/RotateSecret";
import { SecretOnce } from "../developers/SecretOnce";
import { usePermitted, useProject } from "../project";
import { projectsQuery, type Project, type Schemas } from "../queries";

const TOLERANCE_MAX = 10;
const GRACE_HOURS_MAX = 720;

/** A project's own settings, and its signing secret. */
export function SettingsPage() {
  const { t } = useTranslation();
  const project = useProject();
  const mayChange = usePermitted("projects.change");
  if (project === null) return null;
  return (
    <Page title={t("settings.title")} lead={project.name}>
      {mayChange ? (
        <>
          <Settings key={project.projectId} project={project} />
          <Secret project={project} />
        </>
      ) : (
        <Seen project={project} />
      )}
    </Page>
  );
}

/** The same for whoever may only read. */
function Seen({ project }: { readonly project: Project }) {
  const { t, i18n } = useTranslation();
  const format = numbers(i18n.language);
  const yesOrNo = (is: boolean) => t(is ? "coins.yes" : "coins.no");
  return (
    <Section>
      <Facts
        facts={[
          [t("projects.name"), project.name],
          [t("projects.webhook"), project.paymentWebhookUrl ?? <None key="url" />],
          [t("settings.tolerance"), `${format.format(project.underpaymentTolerancePercent)} %`],
          [t("settings.grace"), format.format(project.graceHours)],
          [t("settings.extended"), yesOrNo(project.extendedEvents)],
          [t("settings.active"), yesOrNo(project.isActive)],
        ]}
      />
    </Section>
  );
}

type Change = Schemas["ChangeProject"];

/** What the page changes of a project; of a number, what is typed so far. */
interface Edits {
  readonly name?: string;
  readonly paymentWebhookUrl?: string;
  readonly underpaymentTolerancePercent?: number | string;
  readonly graceHours?: number | string;
  readonly extendedEvents?: boolean;
  readonly isActive?: boolean;
}

/** Return what differs from the project as it is: what others changed meanwhile stays as they left it. */
function changeOf(project: Project, edits: Edits): Change {
  const { paymentWebhookUrl, underpaymentTolerancePercent, graceHours, ...others } = edits;
  const typed = {
    ...others,
    ...(paymentWebhookUrl === undefined ? {} : { paymentWebhookUrl: paymentWebhookUrl.trim() || null }),
    ...numberOf("underpaymentTolerancePercent", underpaymentTolerancePercent),
    ...numberOf("graceHours", graceHours),
  };
  const differs = ([name, value]: [string, unknown]) => project[name as keyof Project] !== value;
  return Object.fromEntries(Object.entries(typed).filter(differs));
}

/** Nothing typed is no nought. */
function numberOf(name: string, typed: number | string | undefined): Readonly<Record<string, number>> {
  const value = typed === undefined || typed === "" ? Number.NaN : Number(typed);
  return Number.isNaN(value) ? {} : { [name]: value };
}

function Settings({ project }: { readonly project: Project }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [edits, setEdits] = useState<Edits>({});
  const [isSaved, setSaved] = useState(false);
  const [isAsked, setAsked] = useState(false);
  const shown = { ...project, paymentWebhookUrl: project.paymentWebhookUrl ?? "", ...edits };
  const change = changeOf(project, edits);
  const isEnding = change.isActive === false;
  const isSame = Object.keys(change).length === 0;
  const edit = (changed: Edits) => {
    setEdits((now) => ({ ...now, ...changed }));
    setSaved(false);
  };

  async function send(): Promise<void> {
    if (!isSame) {
      const params = { path: { projectId: project.projectId } };
      const answer = await unwrap(api.PATCH("/api/merchant/projects/{projectId}", { params, body: change }));
      client.setQueryData(projectsQuery.queryKey, (before) =>
        before?.map((one) => (one.projectId === answer.project.projectId ? answer.project : one)),
      );
      void client.invalidateQueries(projectsQuery);
    }
    // What was typed while this was on its way was not saved by it, and stays.
    setEdits((now) =>
      Object.fromEntries(Object.entries(now).filter(([name, value]) => edits[name as keyof Edits] !== value)),
    );
    setSaved(true);
  }

  const save = useAct(send);
  return (
    <Section>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (isEnding) setAsked(true);
          else void save.run();
        }}
      >
        <Text
          label={t("projects.name")}
          required
          value={shown.name}
          error={save.error?.of("name")}
          onText={(name) => {
            edit({ name });
          }}
        />
        <Text
          label={t("projects.webhook")}
          description={t("projects.webhookTold")}
          type="url"
          value={shown.paymentWebhookUrl}
          error={save.error?.of("paymentWebhookUrl")}
          onText={(paymentWebhookUrl) => {
            edit({ paymentWebhookUrl });
          }}
        />
        <NumberInput
          label={t("settings.tolerance")}
          description={t("settings.toleranceWords")}
          required
          min={0}
          max={TOLERANCE_MAX}
          decimalScale={2}
          suffix=" %"
          value={shown.underpaymentTolerancePercent}
          onChange={(underpaymentTolerancePercent) => {
            edit({ underpaymentTolerancePercent });
          }}
        />
        <NumberInput
          label={t("settings.grace")}
          description={t("settings.graceWords")}
          required
          min={0}
          max={GRACE_HOURS_MAX}
          value={shown.graceHours}
          onChange={(graceHours) => {
            edit({ graceHours });
          }}
        />
        <Switch
          label={t("settings.extended")}
          description={t("settings.extendedWords")}
          checked={shown.extendedEvents}
          onChange={(event) => {
            edit({ extendedEvents: event.currentTarget.checked });
          }}
        />
        <Switch
          label={t("settings.active")}
          description={t("settings.activeWords")}
          checked={shown.isActive}
          onChange={(event) => {
            edit({ isActive: event.currentTarget.checked });
          }}
        />
        {save.error !== null && <ErrorNote error={save.error} />}
        <div className="row">
          <Button type="submit" loading={save.isRunning}>
            {t("settings.save")}
          </Button>
          <span role="status">{isSaved && isSame ? t("settings.saved") : ""}</span>
        </div>
      </form>
      {isAsked && (
        <Confirm
          title={t("settings.offTitle", { name: project.name })}
          act={t("settings.offAct")}
          isDangerous
          onConfirm={send}
          onClose={() => {
            setAsked(false);
          }}
        >
          <p>{t("settings.offWords")}</p>
        </Confirm>
      )}
    </Section>
  );
}

function Secret({ project }: { readonly project: Project }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [isAsked, setAsked] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);

  async function rotate(overlapMinutes: number): Promise<void> {
    const params = { path: { projectId: project.projectId } };
    const path = "/api/merchant/projects/{projectId}/rotate-webhook-secret";
    const { webhookSecret } = await once(`secret ${project.projectId}`, (idempotencyKey) =>
      unwrap(api.POST(path, { params, body: { overlapMinutes, idempotencyKey } })),
    );
    setSecret(webhookSecret);
    void client.invalidateQueries(projectsQuery);
  }

  return (
    <Section title={t("projects.secret")}>
      <div className="stack">
        <p className="muted">{t("settings.secretWords")}</p>
        {secret !== null && <SecretOnce secret={secret} />}
        <div className="row">
          <Button
            variant="default"
            onClick={() => {
              setAsked(true);
            }}
          >
            {t("settings.rotate")}
          </Button>
        </div>
      </div>
      {isAsked && (
        <RotateSecret
          name={project.name}
          previousUntil={project.previousSecretUntil}
          rotate={rotate}
          onClose={() => {
            setAsked(false);
          }}
        />
      )}
    </Section>
  );
}
