import { Button, PasswordInput, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState, type SyntheticEvent } from "react";
import { useTranslation } from "react-i18next";

import { api, merchantSession, unwrap } from "../api";
import { asApiError } from "../../api/errors";
import { useSearchValues } from "../../ui/address";
import { ErrorNote } from "../../ui/Feedback";

import { AuthCard } from "../../ui/AuthCard";
import { destination, readNext } from "../../ui/next";
import { useEmailBefore } from "../../ui/signInAs";
import { useSignedInElsewhere } from "../../ui/useSignedInElsewhere";
import { meQuery } from "../queries";

interface SignInProps {
  /** Whether it lies over a page that goes on once they have signed in: nobody is led anywhere then. */
  readonly isAgain?: boolean;
}

/** Signing in: password first, and a code where the member has a second factor. */
export function SignIn({ isAgain = false }: SignInProps) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const client = useQueryClient();
  const { next } = readNext(useSearchValues());
  const before = useEmailBefore();
  const known = isAgain ? (client.getQueryData(meQuery.queryKey)?.member.email ?? "") : before;
  useSignedInElsewhere(isAgain ? null : merchantSession, next);
  const [email, setEmail] = useState(known);
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [wantsCode, setWantsCode] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);

  async function send(event: SyntheticEvent): Promise<void> {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      const body = { email, password, ...(wantsCode ? { totpCode: code.trim() } : {}) };
      const signed = await unwrap(api.POST("/api/auth/login", { body }));
      if (!isAgain) client.clear(); // whoever was signed in before may have been somebody else
      merchantSession.enter(signed);
      if (!isAgain) await navigate(destination(next));
    } catch (refused) {
      setSending(false);
      if (asApiError(refused).code === "TWO_FACTOR_REQUIRED" && !wantsCode) setWantsCode(true);
      else setError(refused);
    }
  }

  return (
    <AuthCard
      title={t("signIn.title")}
      hasEnded={merchantSession.hasEnded}
      isAgain={isAgain}
      foot={
        <>
          {t("signIn.noAccount")} <Link to="/sign-up">{t("signUp.title")}</Link>
        </>
      }
    >
      <form className="stack" onSubmit={(event) => void send(event)}>
        <TextInput
          label={t("signIn.email")}
          type="email"
          autoComplete="username"
          required
          autoFocus={known === ""}
          data-autofocus={known === "" || undefined}
          value={email}
          onChange={(event) => {
            setEmail(event.currentTarget.value);
          }}
        />
        <PasswordInput
          label={t("signIn.password")}
          autoComplete="current-password"
          required
          autoFocus={known !== ""}
          data-autofocus={known !== "" || undefined}
          value={password}
          visibilityToggleButtonProps={{ "aria-label": t("signIn.show") }}
          onChange={(event) => {
            setPassword(event.currentTarget.value);
          }}
        />
        {wantsCode && (
          <TextInput
            label={t("signIn.code")}
            description={t("signIn.codeWords")}
            autoComplete="one-time-code"
            required
            autoFocus
            value={code}
            onChange={(event) => {
              setCode(event.currentTarget.value);
            }}
          />
        )}
        {error !== null && <ErrorNote error={error} />}
        <Button type="submit" size="md" loading={isSending}>
          {t("signIn.act")}
        </Button>
        <p>
          <Link to="/lost-password" state={{ email }}>
            {t("lost.title")}
          </Link>
        </p>
      </form>
    </AuthCard>
  );
}
