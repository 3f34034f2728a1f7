import { useState } from "react";
import { useTranslation } from "react-i18next";

import { PasswordText } from "./PasswordText";
import { Text } from "./Text";

/** Return the fields for what somebody shows who changes how they sign in, what the API takes of them, and what empties them. */
export function usePasswordAndCode() {
  const { t } = useTranslation();
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const fields = (
    <>
      <PasswordText
        label={t("signIn.password")}
        autoComplete="current-password"
        value={password}
        onText={setPassword}
      />
      <Text label={t("signIn.code")} required autoComplete="one-time-code" value={code} onText={setCode} />
    </>
  );
  const clear = () => {
    setPassword("");
    setCode("");
  };
  return { fields, body: { password, totpCode: code.trim() }, clear };
}
