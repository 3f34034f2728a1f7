import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { AuthCard } from "../../ui/AuthCard";
import { ErrorNote } from "../../ui/Feedback";
import { useEmailBefore } from "../../ui/signInAs";
import { Text } from "../../ui/Text";
import { useAct } from "../../ui/useAct";
import { api, unwrap } from "../api";

/** Asking for a link that sets a new password: whoever runs the gateway is told, and hands it over. */
export function LostPassword() {
  const { t } = useTranslation();
  const [email, setEmail] = useState(useEmailBefore());
  const [asked, setAsked] = useState("");
  const wanted = email.trim();
  const ask = useAct(async () => {
    setAsked(wanted);
    await unwrap(api.POST("/api/auth/password-reset/request", { body: { email: wanted } }));
  });
  // Of another address than the one that is there now it says nothing: that one can be asked for as well.
  const isDone = ask.isDone && asked === wanted;
  return (
    <AuthCard
      title={t("lost.title")}
      foot={
        <Link to="/sign-in" state={{ email }}>
          {t("signIn.title")}
        </Link>
      }
    >
      <form className="stack" onSubmit={ask.submit}>
        <p>{t("lost.words")}</p>
        <Text
          label={t("signIn.email")}
          type="email"
          autoComplete="username"
          required
          autoFocus
          value={email}
          error={ask.error?.of("email")}
          onText={setEmail}
        />
        {ask.error !== null && <ErrorNote error={ask.error} />}
        <Button type="submit" size="md" loading={ask.isRunning} disabled={isDone}>
          {t("lost.act")}
        </Button>
        <p role="status">{isDone && t("lost.done")}</p>
      </form>
    </AuthCard>
  );
}
