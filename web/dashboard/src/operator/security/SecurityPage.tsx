import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Page, Section } from "../../ui/Page";
import { PasswordSection } from "../../ui/PasswordSection";
import { QueryView } from "../../ui/QueryView";
import { RecoveryCodes } from "../../ui/RecoveryCodes";
import { SESSIONS_MAX, SessionsSection } from "../../ui/SessionsSection";
import { Chip } from "../../ui/Status";
import { Confirm } from "../../ui/Confirm";
import { usePasswordAndCode } from "../../ui/usePasswordAndCode";
import { api, operatorSession, unwrap, useWords } from "../api";
import { meQuery } from "../queries";

/** How an operator signs in: recovery codes, the password, and from where one is signed in now. */
export function SecurityPage() {
  const { t } = useWords();
  return (
    <Page title={t("common:security.title")} lead={t("security.lead")}>
      <TwoFactor />
      <PasswordSection
        session={operatorSession}
        codeRequired
        onChange={(body) => unwrap(api.POST("/api/admin/auth/password", { body }))}
      />
      <Sessions />
    </Page>
  );
}

/** The second factor is always on. What can be renewed are the codes for when it is lost. */
function TwoFactor() {
  const { t } = useWords();
  const query = useQuery({
    queryKey: [...meQuery.queryKey, "codes"],
    queryFn: ({ signal }) => unwrap(api.GET("/api/admin/auth/me", { signal })),
  });
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  return (
    <Section title={t("common:twoFactor.title")}>
      {codes !== null && <RecoveryCodes codes={codes} />}
      <QueryView query={query} lines={2}>
        {({ recoveryCodesLeft }) => (
          <div className="stack">
            <p className="row">
              <Chip tone="good">{t("common:twoFactor.on")}</Chip>
              <span>{t("common:twoFactor.left", { count: recoveryCodesLeft })}</span>
            </p>
            <Renew onCodes={setCodes} />
          </div>
        )}
      </QueryView>
    </Section>
  );
}

function Renew({ onCodes }: { readonly onCodes: (codes: readonly string[]) => void }) {
  const { t } = useWords();
  const client = useQueryClient();
  const { fields, body, clear } = usePasswordAndCode();
  const [isAsked, setAsked] = useState(false);
  return (
    <>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setAsked(true);
        }}
      >
        {fields}
        <div className="row">
          <Button type="submit" variant="default">
            {t("common:twoFactor.renew")}
          </Button>
        </div>
      </form>
      {isAsked && (
        <Confirm
          title={t("common:twoFactor.renewTitle")}
          act={t("common:twoFactor.renew")}
          isDangerous
          onConfirm={async () => {
            onCodes((await unwrap(api.POST("/api/admin/auth/recovery-codes", { body }))).recoveryCodes);
            clear();
            void client.invalidateQueries({ queryKey: meQuery.queryKey });
          }}
          onClose={() => {
            setAsked(false);
          }}
        >
          <p>{t("common:twoFactor.renewWords")}</p>
        </Confirm>
      )}
    </>
  );
}

function Sessions() {
  return (
    <SessionsSection
      read={async (signal) => {
        const params = { query: { limit: SESSIONS_MAX } };
        return (await unwrap(api.GET("/api/admin/auth/sessions", { params, signal }))).sessions;
      }}
      end={(sessionId) =>
        unwrap(api.DELETE("/api/admin/auth/sessions/{sessionId}", { params: { path: { sessionId } } }))
      }
      endOthers={() => unwrap(api.DELETE("/api/admin/auth/sessions"))}
    />
  );
}
