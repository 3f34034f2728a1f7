import { Button, PasswordInput, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState, type SyntheticEvent } from "react";
import { useTranslation } from "react-i18next";

import { api, merchantSession, unwrap } from "../api";
import { asApiError } from "../../api/errors";
import { ErrorNote } from "../../ui/Feedback";

import { AuthCard } from "../../ui/AuthCard";

/** Becoming a merchant, where the operator lets anybody register. */
export function SignUp() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const refused = error === null ? null : asApiError(error);

  async function send(event: SyntheticEvent): Promise<void> {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      const signed = await unwrap(api.POST("/api/auth/register", { body: { name, email, password } }));
      client.clear();
      merchantSession.enter(signed);
      await navigate({ to: "/" });
    } catch (problem) {
      setError(problem);
      setSending(false);
    }
  }

  return (
    <AuthCard
      title={t("signUp.title")}
      foot={
        <>
          {t("signUp.hasAccount")} <Link to="/sign-in">{t("signIn.title")}</Link>
        </>
      }
    >
      <form className="stack" onSubmit={(event) => void send(event)}>
        <TextInput
          label={t("signUp.name")}
          description={t("signUp.nameWords")}
          autoComplete="organization"
          required
          autoFocus
          value={name}
          error={refused?.of("name")}
          onChange={(event) => {
            setName(event.currentTarget.value);
          }}
        />
        <TextInput
          label={t("signIn.email")}
          type="email"
          autoComplete="username"
          required
          value={email}
          error={refused?.of("email")}
          onChange={(event) => {
            setEmail(event.currentTarget.value);
          }}
        />
        <PasswordInput
          label={t("signIn.password")}
          description={t("signUp.passwordWords")}
          autoComplete="new-password"
          required
          value={password}
          error={refused?.of("password")}
          visibilityToggleButtonProps={{ "aria-label": t("signIn.show") }}
          onChange={(event) => {
            setPassword(event.currentTarget.value);
          }}
        />
        {error !== null && <ErrorNote error={error} />}
        <Button type="submit" size="md" loading={isSending}>
          {t("signUp.act")}
        </Button>
      </form>
    </AuthCard>
  );
}
