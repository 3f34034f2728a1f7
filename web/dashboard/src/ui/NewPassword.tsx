import { useTranslation } from "react-i18next";

import { SetPassword } from "./SetPassword";
import { useLinkToken } from "./useLinkToken";

interface NewPasswordProps {
  readonly onSet: (body: { readonly token: string; readonly password: string }) => Promise<unknown>;
}

/** Where the link leads that somebody was given who cannot sign in: it says nothing of who that is. */
export function NewPassword({ onSet }: NewPasswordProps) {
  const { t } = useTranslation();
  const token = useLinkToken();
  return (
    <SetPassword
      key={token}
      title={t("link.title")}
      token={token}
      act={t("link.act")}
      done={t("link.done")}
      onSet={(password) => onSet({ token, password })}
    />
  );
}
