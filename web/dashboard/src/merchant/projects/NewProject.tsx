import { Button, TextInput } from "@mantine/core";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState, type SyntheticEvent } from "react";
import { useTranslation } from "react-i18next";

import { api, merchantSession, unwrap } from "../api";
import { asApiError } from "../../api/errors";
import { Choice } from "../../ui/Choice";
import { ErrorNote } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { Secret } from "../../ui/Secret";
import { AuthCard } from "../../ui/AuthCard";
import { StillSignedIn } from "../../ui/StillSignedIn";
import { usePermitted } from "../project";
import { projectsQuery, type Project } from "../queries";

interface Made {
  readonly project: Project;
  readonly webhookSecret: string | undefined;
}

/** Making a project: its signing secret is shown once, here. */
export function NewProject() {
  const { t } = useTranslation();
  const client = useQueryClient();
  const { data: projects } = useSuspenseQuery(projectsQuery);
  const mayAdd = usePermitted("projects.add");
  const [name, setName] = useState("");
  const [mode, setMode] = useState<"live" | "sandbox">("sandbox");
  const [webhook, setWebhook] = useState("");
  const [made, setMade] = useState<Made | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const refused = error === null ? null : asApiError(error);

  async function send(event: SyntheticEvent): Promise<void> {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      const body = { name, mode, ...(webhook === "" ? {} : { paymentWebhookUrl: webhook }) };
      const { project, webhookSecret } = await unwrap(api.POST("/api/merchant/projects", { body }));
      await client.invalidateQueries(projectsQuery);
      setMade({ project, webhookSecret });
    } catch (problem) {
      setError(problem);
    } finally {
      setSending(false);
    }
  }

  if (made !== null) return <MadeProject made={made} />;
  if (!mayAdd) {
    return (
      <AuthCard
        title={t(projects.length === 0 ? "projects.noneOpen" : "projects.new")}
        foot={projects.length === 0 ? <SignOut /> : <Link to="/">{t("ui.back")}</Link>}
      >
        <StillSignedIn session={merchantSession} />
        {projects.length > 0 && <p>{t("ui.notPermitted")}</p>}
        <p>{t(projects.length === 0 ? "projects.noneOpenWords" : "ui.notPermittedWords")}</p>
      </AuthCard>
    );
  }
  return (
    <AuthCard
      title={t(projects.length === 0 ? "projects.first" : "projects.new")}
      foot={projects.length === 0 ? <SignOut /> : <Link to="/">{t("ui.back")}</Link>}
    >
      <StillSignedIn session={merchantSession} />
      <form className="stack" onSubmit={(event) => void send(event)}>
        <TextInput
          label={t("projects.name")}
          description={t("projects.nameWords")}
          required
          autoFocus
          value={name}
          error={refused?.of("name")}
          onChange={(event) => {
            setName(event.currentTarget.value);
          }}
        />
        <div>
          <Choice
            label={t("mode.title")}
            value={mode}
            options={[
              { value: "sandbox", label: t("mode.sandbox") },
              { value: "live", label: t("mode.live") },
            ]}
            onChoice={setMode}
          />
          <p className="muted">{t(mode === "live" ? "mode.liveWords" : "mode.sandboxWords")}</p>
        </div>
        <TextInput
          label={t("projects.webhook")}
          description={t("projects.webhookWords")}
          type="url"
          placeholder="https://"
          value={webhook}
          error={refused?.of("paymentWebhookUrl")}
          onChange={(event) => {
            setWebhook(event.currentTarget.value);
          }}
        />
        {error !== null && <ErrorNote error={error} />}
        <Button type="submit" size="md" loading={isSending}>
          {t("projects.create")}
        </Button>
      </form>
    </AuthCard>
  );
}

/** The way out for whoever has no project, and so no menu to leave by. */
function SignOut() {
  const { t } = useTranslation();
  return (
    <Button variant="default" size="compact-sm" onClick={() => void merchantSession.end()}>
      {t("user.signOut")}
    </Button>
  );
}

function MadeProject({ made }: { readonly made: Made }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { project, webhookSecret } = made;
  return (
    <AuthCard title={t("projects.made", { name: project.name })}>
      {webhookSecret !== undefined && (
        <Section title={t("projects.secret")}>
          <div className="stack">
            <Secret text={webhookSecret} label={t("projects.secretCopy")} />
            <p className="muted">{t("projects.secretWords")}</p>
          </div>
        </Section>
      )}
      <Button
        size="md"
        onClick={() => void navigate({ to: "/$projectId/overview", params: { projectId: project.projectId } })}
      >
        {t("projects.open")}
      </Button>
    </AuthCard>
  );
}
