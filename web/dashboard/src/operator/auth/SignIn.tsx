import { Button, PasswordInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Suspense, lazy, useState } from "react";

import { asApiError, type ApiError } from "../../api/errors";
import { useSearchValues } from "../../ui/address";
import { AuthCard } from "../../ui/AuthCard";
import { ErrorNote, Loading } from "../../ui/Feedback";
import { destination, readNext } from "../../ui/next";
import { Text } from "../../ui/Text";
import { useAct } from "../../ui/useAct";
import { useSignedInElsewhere } from "../../ui/useSignedInElsewhere";
import { meQuery } from "../queries";
import { api, operatorSession, unwrap, useWords, type Schemas } from "../api";

// Nobody does it twice.
const Enrol = lazy(async () => ({ default: (await import("./Enrol")).Enrol }));

interface SignInProps {
  /** Whether it lies over a page that goes on once they have signed in: nobody is led anywhere then. */
  readonly isAgain?: boolean;
}

/** Signing in: password first, then a code; whoever has no authenticator yet sets one up. */
export function SignIn({ isAgain = false }: SignInProps) {
  const { t } = useWords();
  const navigate = useNavigate();
  const client = useQueryClient();
  const { next } = readNext(useSearchValues());
  const known = isAgain ? (client.getQueryData(meQuery.queryKey)?.operator.email ?? "") : "";
  const [email, setEmail] = useState(known);
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [wants, setWants] = useState<"password" | "code" | "authenticator">("password");
  const [foundOn, setFoundOn] = useState<ApiError | null>(null);
  // The codes for when an authenticator is lost are shown this once.
  useSignedInElsewhere(isAgain || wants === "authenticator" ? null : operatorSession, next);

  async function enter(signed: Schemas["OperatorSignedIn"]): Promise<void> {
    if (!isAgain) client.clear(); // whoever was signed in before may have been somebody else
    operatorSession.enter(signed);
    if (!isAgain) await navigate(destination(next));
  }

  const signIn = useAct(async () => {
    const body = { email, password, ...(wants === "code" ? { totpCode: code.trim() } : {}) };
    try {
      await enter(await unwrap(api.POST("/api/admin/auth/sign-in", { body })));
    } catch (refused) {
      const wanted = asApiError(refused).code;
      if (wanted === "TWO_FACTOR_REQUIRED" && wants === "password") setWants("code");
      else if (wanted === "TWO_FACTOR_NOT_ENROLLED") setWants("authenticator");
      else throw refused;
    }
  });

  if (wants === "authenticator") {
    return (
      <Suspense
        fallback={
          <AuthCard title={t("enrol.title")}>
            <Loading lines={8} />
          </AuthCard>
        }
      >
        <Enrol
          email={email}
          password={password}
          onSignedIn={enter}
          onFoundOn={(refused) => {
            setFoundOn(refused);
            setWants("code");
          }}
        />
      </Suspense>
    );
  }
  return (
    <AuthCard title={t("signIn.title")} hasEnded={operatorSession.hasEnded} isAgain={isAgain}>
      <form className="stack" onSubmit={signIn.submit}>
        <Text
          label={t("common:signIn.email")}
          type="email"
          autoComplete="username"
          required
          autoFocus={known === ""}
          data-autofocus={known === "" || undefined}
          value={email}
          onText={setEmail}
        />
        <PasswordInput
          label={t("common:signIn.password")}
          autoComplete="current-password"
          required
          autoFocus={known !== ""}
          data-autofocus={known !== "" || undefined}
          value={password}
          visibilityToggleButtonProps={{ "aria-label": t("common:signIn.show") }}
          onChange={(event) => {
            setPassword(event.currentTarget.value);
          }}
        />
        {wants === "code" && (
          <Text
            label={t("common:signIn.code")}
            description={t("common:signIn.codeWords")}
            autoComplete="one-time-code"
            required
            autoFocus
            value={code}
            onText={setCode}
          />
        )}
        {(signIn.error ?? foundOn) !== null && <ErrorNote error={signIn.error ?? foundOn} />}
        <Button type="submit" size="md" loading={signIn.isRunning}>
          {t("common:signIn.act")}
        </Button>
        <p className="muted">{t("signIn.lost")}</p>
      </form>
    </AuthCard>
  );
}
