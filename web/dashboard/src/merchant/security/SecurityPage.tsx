import { useTranslation } from "react-i18next";

import { Page } from "../../ui/Page";

import { Password } from "./Password";
import { Sessions } from "./Sessions";
import { TwoFactor } from "./TwoFactor";

/** How one signs in: the second factor, the password, and from where one is signed in now. */
export function SecurityPage() {
  const { t } = useTranslation();
  return (
    <Page title={t("security.title")}>
      <TwoFactor />
      <Password />
      <Sessions />
    </Page>
  );
}
