import { Button, NumberInput, Switch } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { ErrorNote } from "../../ui/Feedback";
import { Page, Section } from "../../ui/Page";
import { Text } from "../../ui/Text";
import { useAct } from "../../ui/useAct";
import { RotateSecret } from "../developers/RotateSecret";
import { SecretOnce } from "../developers/SecretOnce";
import { usePermitted, useProject } from "../project";
import { projectsQuery, type Project } from "../queries";

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
      <Settings key={project.projectId} project={project} mayChange={mayChange} />
      {mayChange && <Secret project={project} />}
    </Page>
  );
}

function Settings({ project, mayChange }: { readonly project: Project; readonly mayChange: boolean }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [name, setName] = useState(project.name);
  const [webhook, setWebhook] = useState(project.paymentWebhookUrl ?? "");
  const [tolerance, setTolerance] = useState(project.underpaymentTolerancePercent);
  const [graceHours, setGraceHours] = useState(project.graceHours);
  const [extendedEvents, setExtendedEvents] = useState(project.extendedEvents);
  const [isActive, setActive] = useState(project.isActive);
  const [isSaved, setSaved] = useState(false);
  const save = useAct(async () => {
    const body = {
      name,
      paymentWebhookUrl: webhook.trim() === "" ? null : webhook.trim(),
      underpaymentTolerancePercent: tolerance,
      graceHours,
      extendedEvents,
      isActive,
    };
    const params = { path: { projectId: project.projectId } };
    await unwrap(api.PATCH("/api/merchant/projects/{projectId}", { params, body }));
    await client.invalidateQueries(projectsQuery);
    setSaved(true);
  });
  return (
    <Section>
      <form
        className="stack"
        onSubmit={save.submit}
        onChange={() => {
          setSaved(false);
        }}
      >
        <Text
          label={t("projects.name")}
          required
          disabled={!mayChange}
          value={name}
          error={save.error?.of("name")}
          onText={setName}
        />
        <Text
          label={t("projects.webhook")}
          description={t("projects.webhookWords")}
          type="url"
          disabled={!mayChange}
          value={webhook}
          error={save.error?.of("paymentWebhookUrl")}
          onText={setWebhook}
        />
        <NumberInput
          label={t("settings.tolerance")}
          description={t("settings.toleranceWords")}
          min={0}
          max={TOLERANCE_MAX}
          decimalScale={2}
          suffix=" %"
          disabled={!mayChange}
          value={tolerance}
          onChange={(value) => {
            setTolerance(Number(value));
          }}
        />
        <NumberInput
          label={t("settings.grace")}
          description={t("settings.graceWords")}
          min={0}
          max={GRACE_HOURS_MAX}
          disabled={!mayChange}
          value={graceHours}
          onChange={(value) => {
            setGraceHours(Number(value));
          }}
        />
        <Switch
          label={t("settings.extended")}
          description={t("settings.extendedWords")}
          disabled={!mayChange}
          checked={extendedEvents}
          onChange={(event) => {
            setExtendedEvents(event.currentTarget.checked);
          }}
        />
        <Switch
          label={t("settings.active")}
          description={t("settings.activeWords")}
          disabled={!mayChange}
          checked={isActive}
          onChange={(event) => {
            setActive(event.currentTarget.checked);
          }}
        />
        {save.error !== null && <ErrorNote error={save.error} />}
        {mayChange && (
          <div className="row">
            <Button type="submit" loading={save.isRunning}>
              {t("settings.save")}
            </Button>
            <span role="status">{isSaved ? t("settings.saved") : ""}</span>
          </div>
        )}
      </form>
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
    setSecret((await unwrap(api.POST(path, { params, body: { overlapMinutes } }))).webhookSecret);
    await client.invalidateQueries(projectsQuery);
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
