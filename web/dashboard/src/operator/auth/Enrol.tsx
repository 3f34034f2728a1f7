import { Button } from "@mantine/core";
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { asApiError, type ApiError } from "../../api/errors";
import { AuthCard } from "../../ui/AuthCard";
import { Copyable } from "../../ui/Copyable";
import { ErrorNote } from "../../ui/Feedback";
import { QueryView } from "../../ui/QueryView";
import { RecoveryCodes } from "../../ui/RecoveryCodes";
import { Text } from "../../ui/Text";
import { useAct } from "../../ui/useAct";
import { api, unwrap, useWords, type Schemas } from "../api";

interface EnrolProps {
  readonly email: string;
  readonly password: string;
  readonly onSignedIn: (signed: Schemas["OperatorSignedIn"]) => Promise<void>;
  /** An authenticator is set up already: the answer that said so was lost, or it was done in another page. */
  readonly onFoundOn: (refused: ApiError) => void;
}

/** The first sign-in: an authenticator is set up, and the codes for when it is lost are shown, this once. */
export function Enrol({ email, password, onSignedIn, onFoundOn }: EnrolProps) {
  const { t } = useWords();
  const [code, setCode] = useState("");
  const [enrolled, setEnrolled] = useState<Schemas["OperatorEnrolled"] | null>(null);
  // The secret is made once for this form, and kept nowhere when it is left.
  const secret = useQuery(
    queryOptions({
      queryKey: ["enrol", email],
      staleTime: Infinity,
      gcTime: 0,
      refetchOnWindowFocus: false,
      queryFn: () => unwrap(api.POST("/api/admin/auth/two-factor/enrol", { body: { email, password } })),
    }),
  );
  const confirm = useAct(async () => {
    const body = { email, password, totpCode: code.trim() };
    try {
      setEnrolled(await unwrap(api.POST("/api/admin/auth/two-factor/confirm", { body })));
    } catch (error) {
      const refused = asApiError(error);
      if (refused.code !== "TWO_FACTOR_ON") throw refused;
      onFoundOn(refused);
    }
  });
  const enter = useAct(async () => {
    if (enrolled !== null) await onSignedIn(enrolled);
  });

  if (enrolled !== null) {
    return (
      <AuthCard title={t("enrol.codes")}>
        <form className="stack" onSubmit={enter.submit}>
          <RecoveryCodes codes={enrolled.recoveryCodes} />
          <Button type="submit" size="md" loading={enter.isRunning}>
            {t("enrol.go")}
          </Button>
        </form>
      </AuthCard>
    );
  }
  return (
    <AuthCard title={t("enrol.title")}>
      <QueryView query={secret} lines={8}>
        {(made) => (
          <form className="stack" onSubmit={confirm.submit}>
            <p>{t("common:twoFactor.scan")}</p>
            <img src={made.qrCode} alt={t("common:twoFactor.qr")} width="200" height="200" className="qr" />
            <Copyable text={made.secret}>
              <code>{made.secret}</code>
            </Copyable>
            <Text
              label={t("common:signIn.code")}
              required
              autoFocus
              autoComplete="one-time-code"
              inputMode="numeric"
              value={code}
              onText={setCode}
            />
            {confirm.error !== null && <ErrorNote error={confirm.error} />}
            <Button type="submit" size="md" loading={confirm.isRunning}>
              {t("common:twoFactor.confirm")}
            </Button>
          </form>
        )}
      </QueryView>
    </AuthCard>
  );
}
