import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import type { Session } from "../api/session";

import { ErrorNote } from "./Feedback";
import { Section } from "./Page";
import { PasswordText } from "./PasswordText";
import { Text } from "./Text";
import { useAct } from "./useAct";

interface Change {
  readonly currentPassword: string;
  readonly newPassword: string;
  /** Empty where none was typed. */
  readonly totpCode: string;
}

interface PasswordSectionProps {
  readonly session: Session;
  /** Whether everybody has a second factor. */
  readonly codeRequired?: boolean;
  /** Changes it; every session ends, and this is the one that begins. */
  readonly onChange: (change: Change) => Promise<Parameters<Session["begin"]>[0]>;
}

/** Changing the password, which ends every other session. */
export function PasswordSection({ session, codeRequired = false, onChange }: PasswordSectionProps) {
  const { t } = useTranslation();
  const [currentPassword, setCurrent] = useState("");
  const [newPassword, setNew] = useState("");
  const [code, setCode] = useState("");
  const [isDone, setDone] = useState(false);
  const change = useAct(async () => {
    session.begin(await onChange({ currentPassword, newPassword, totpCode: code.trim() }));
    setCurrent("");
    setNew("");
    setCode("");
    setDone(true);
  });
  return (
    <Section title={t("password.title")}>
      <form className="stack" onSubmit={change.submit}>
        <PasswordText
          label={t("password.current")}
          autoComplete="current-password"
          value={currentPassword}
          onText={setCurrent}
        />
        <PasswordText
          label={t("password.new")}
          description={t("signUp.passwordWords")}
          autoComplete="new-password"
          value={newPassword}
          error={change.error?.of("newPassword")}
          onText={setNew}
        />
        <Text
          label={t("signIn.code")}
          {...(codeRequired ? { required: true } : { description: t("password.codeWords") })}
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
