import { Button, PasswordInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { api, merchantSession, unwrap } from "../api";
import { ErrorNote } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { Text } from "../../ui/Text";
import { useAct } from "../../ui/useAct";

/** Changing the password, which ends every other session. */
export function Password() {
  const { t } = useTranslation();
  const [currentPassword, setCurrent] = useState("");
  const [newPassword, setNew] = useState("");
  const [code, setCode] = useState("");
  const [isDone, setDone] = useState(false);
  const change = useAct(async () => {
    const body = { currentPassword, newPassword, ...(code.trim() === "" ? {} : { totpCode: code.trim() }) };
    merchantSession.begin(await unwrap(api.POST("/api/auth/password", { body })));
    setCurrent("");
    setNew("");
    setCode("");
    setDone(true);
  });
  const toggle = { "aria-label": t("signIn.show") };
  return (
    <Section title={t("password.title")}>
      <form className="stack" onSubmit={change.submit}>
        <PasswordInput
          label={t("password.current")}
          autoComplete="current-password"
          required
          value={currentPassword}
          visibilityToggleButtonProps={toggle}
          onChange={(event) => {
            setCurrent(event.currentTarget.value);
          }}
        />
        <PasswordInput
          label={t("password.new")}
          description={t("signUp.passwordWords")}
          autoComplete="new-password"
          required
          value={newPassword}
          error={change.error?.of("newPassword")}
          visibilityToggleButtonProps={toggle}
          onChange={(event) => {
            setNew(event.currentTarget.value);
          }}
        />
        <Text
          label={t("signIn.code")}
          description={t("password.codeWords")}
          autoComplete="one-time-code"
          value={code}
          onText={setCode}
        />
        {change.error !== null && <ErrorNote error={change.error} />}
        <div className="row">
          <Button type="submit" variant="default" loading={change.isRunning}>
            {t("password.change")}
          </Button>
          <span role="status">{isDone && change.error === null ? t("password.done") : ""}</span>
        </div>
      </form>
    </Section>
  );
}
