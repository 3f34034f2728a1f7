import { Button } from "@mantine/core";
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { browserName } from "../../ui/browser";
import { Confirm } from "../../ui/Confirm";
import { ErrorNote } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Chip } from "../../ui/Status";
import { useAct } from "../../ui/useAct";
import { When } from "../../ui/When";

const SESSIONS_MAX = 100;

const sessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: async ({ signal }) => {
    const params = { query: { limit: SESSIONS_MAX } };
    return (await unwrap(api.GET("/api/auth/sessions", { params, signal }))).sessions;
  },
});

/** From where one is signed in, and the way to end it. */
export function Sessions() {
  const { t } = useTranslation();
  const client = useQueryClient();
  const query = useQuery(sessionsQuery);
  const [isAsked, setAsked] = useState(false);

  async function endOthers(): Promise<void> {
    await unwrap(api.DELETE("/api/auth/sessions"));
    void client.invalidateQueries(sessionsQuery);
  }

  return (
    <Section
      title={t("sessions.title")}
      flush
      actions={
        <Button
          variant="default"
          size="compact-md"
          onClick={() => {
            setAsked(true);
          }}
        >
          {t("sessions.endOthers")}
        </Button>
      }
    >
      {isAsked && (
        <Confirm
          title={t("sessions.othersTitle")}
          act={t("sessions.endOthers")}
          isDangerous
          onConfirm={endOthers}
          onClose={() => {
            setAsked(false);
          }}
        >
          <p>{t("sessions.othersWords")}</p>
        </Confirm>
      )}
      <QueryView query={query}>
        {(sessions) => (
          <Plain
            label={t("sessions.title")}
            rows={sessions}
            rowKey={(one) => one.sessionId}
            columns={[
              {
                id: "agent",
                title: t("sessions.browser"),
                cell: (one) =>
                  one.userAgent === null ? "–" : <span title={one.userAgent}>{browserName(one.userAgent)}</span>,
              },
              { id: "ip", title: t("sessions.address"), cell: (one) => <code>{one.ip ?? "–"}</code> },
              { id: "used", title: t("sessions.used"), cell: (one) => <When at={one.lastUsedAt} /> },
              {
                id: "end",
                title: "",
                atEnd: true,
                cell: (one) =>
                  one.current ? <Chip tone="good">{t("sessions.this")}</Chip> : <End sessionId={one.sessionId} />,
              },
            ]}
          />
        )}
      </QueryView>
    </Section>
  );
}

function End({ sessionId }: { readonly sessionId: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const end = useAct(async () => {
    await unwrap(api.DELETE("/api/auth/sessions/{sessionId}", { params: { path: { sessionId } } }));
    void client.invalidateQueries(sessionsQuery);
  });
  return (
    <>
      {end.error !== null && <ErrorNote error={end.error} />}
      <Button variant="default" size="compact-sm" loading={end.isRunning} onClick={() => void end.run()}>
        {t("sessions.end")}
      </Button>
    </>
  );
}
