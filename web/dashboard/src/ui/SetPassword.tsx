import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { AuthCard } from "./AuthCard";
import { ErrorNote } from "./Feedback";
import { PasswordText } from "./PasswordText";
import { useAct } from "./useAct";

interface SetPasswordProps {
  readonly title: string;
  /** What the link holds behind its #; nothing where it was not copied as a whole. */
  readonly token: string;
  /** What sets it. */
  readonly act: string;
  /** What is said once it is set. */
  readonly done: string;
  readonly onSet: (password: string) => Promise<unknown>;
  /** Whose it is, where that is known: browsers keep it under this name. */
  readonly email?: string | undefined;
  /** Whether the link is known to open nothing. */
  readonly isOver?: boolean;
  readonly children?: ReactNode;
}

/** Where a one-time link leads: a password is set, and then somebody signs in with it. */
export function SetPassword({ title, token, act, done, onSet, email, isOver, children }: SetPasswordProps) {
  const { t } = useTranslation();
  const [password, setPassword] = useState("");
  const set = useAct(() => onSet(password));
  const signIn = t("signIn.title");
  if (set.isDone) {
    return (
      <AuthCard title={title}>
        <p role="status">{done}</p>
        <Button component={Link} to="/sign-in" state={email === undefined ? {} : { email }} size="md">
          {signIn}
        </Button>
      </AuthCard>
    );
  }
  return (
    <AuthCard title={title} foot={<Link to="/sign-in">{signIn}</Link>}>
      {children}
      {token === "" && <p role="alert">{t("link.incomplete")}</p>}
      {token !== "" && isOver !== true && (
        <form className="stack" onSubmit={set.submit}>
          {email !== undefined && <input type="email" autoComplete="username" value={email} readOnly hidden />}
          <PasswordText
            label={t("signIn.password")}
            description={t("signUp.passwordWords")}
            autoComplete="new-password"
            maxLength={1024}
            autoFocus
            value={password}
            error={set.error?.of("password")}
            onText={setPassword}
          />
          {set.error !== null && <ErrorNote error={set.error} />}
          <Button type="submit" size="md" loading={set.isRunning}>
            {act}
          </Button>
        </form>
      )}
    </AuthCard>
  );
}
