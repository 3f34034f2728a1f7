import { useTranslation } from "react-i18next";

import { SetPassword as Form } from "../../ui/SetPassword";
import { useLinkToken } from "../../ui/useLinkToken";
import { api, unwrap } from "../api";

/** Where the link leads that whoever runs the gateway, or an owner, gives to somebody. */
export function SetPassword() {
  const { t } = useTranslation();
  const token = useLinkToken();
  return (
    <Form
      key={token}
      title={t("link.title")}
      token={token}
      act={t("link.act")}
      done={t("link.done")}
      onSet={(password) => unwrap(api.POST("/api/auth/password-reset/confirm", { body: { token, password } }))}
    />
  );
}
