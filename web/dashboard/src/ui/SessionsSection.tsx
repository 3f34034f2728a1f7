import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { browserName } from "./browser";
import { Confirm } from "./Confirm";
import { ErrorNote } from "./Feedback";
import { None } from "./None";
import { Section } from "./Page";
import { Plain } from "./Plain";
import { QueryView } from "./QueryView";
import { Chip } from "./Status";
import { useAct } from "./useAct";
import { When } from "./When";

/** So many sessions somebody has at most. */
export const SESSIONS_MAX = 100;

interface OpenSession {
  readonly sessionId: string;
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly lastUsedAt: string;
  readonly current: boolean;
}

interface SessionsSectionProps {
  readonly read: (signal: AbortSignal) => Promise<readonly OpenSession[]>;
  readonly end: (sessionId: string) => Promise<unknown>;
  readonly endOthers: () => Promise<unknown>;
}

const KEY = ["sessions"];

/** From where one is signed in, and the way to end it. */
export function SessionsSection({ read, end, endOthers }: SessionsSectionProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const query = useQuery({ queryKey: KEY, queryFn: ({ signal }) => read(signal) });
  const readAgainAfter = async (ending: Promise<unknown>) => {
    await ending;
    void client.invalidateQueries({ queryKey: KEY });
  };
  const [isAsked, setAsked] = useState(false);
  return (
    <Section
      title={t("sessions.title")}
      flush
      actions={
        query.data?.some((one) => !one.current) === true && (
          <Button
            variant="default"
            onClick={() => {
              setAsked(true);
            }}
          >
            {t("sessions.endOthers")}
          </Button>
        )
      }
    >
      {isAsked && (
        <Confirm
          title={t("sessions.othersTitle")}
          act={t("sessions.endOthers")}
          isDangerous
          onConfirm={() => readAgainAfter(endOthers())}
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
                  one.userAgent === null ? <None /> : <span title={one.userAgent}>{browserName(one.userAgent)}</span>,
              },
              {
                id: "ip",
                title: t("sessions.address"),
                cell: (one) => (one.ip === null ? <None /> : <code>{one.ip}</code>),
              },
              { id: "used", title: t("sessions.used"), cell: (one) => <When at={one.lastUsedAt} /> },
              {
                id: "end",
                title: "",
                atEnd: true,
                cell: (one) =>
                  one.current ? (
                    <Chip tone="good">{t("sessions.this")}</Chip>
                  ) : (
                    <End onEnd={() => readAgainAfter(end(one.sessionId))} />
                  ),
              },
            ]}
          />
        )}
      </QueryView>
    </Section>
  );
}

function End({ onEnd }: { readonly onEnd: () => Promise<unknown> }) {
  const { t } = useTranslation();
  const end = useAct(onEnd);
  return (
    <>
      {end.error !== null && <ErrorNote error={end.error} />}
      <Button variant="default" size="compact-sm" loading={end.isRunning} onClick={() => void end.run()}>
        {t("sessions.end")}
      </Button>
    </>
  );
}
