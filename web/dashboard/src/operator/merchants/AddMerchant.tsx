import { Switch } from "@mantine/core";
import { useState } from "react";

import { Text } from "../../ui/Text";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords } from "../api";
import { LinkOnce, type Handed } from "../LinkOnce";
import { usePermitted } from "../queries";

import { useMerchantsChanged } from "./queries";

/** Lets a merchant in: whoever opens the link sets the password. */
export function AddMerchant() {
  const { t } = useWords();
  const changed = useMerchantsChanged();
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [isLive, setLive] = useState(false);
  const [handed, setHanded] = useState<Handed | null>(null);
  if (!usePermitted("merchants.add")) return null;
  return (
    <>
      <ActButton
        act={t("merchants.add")}
        title={t("merchants.add")}
        onOpen={() => {
          setHanded(null);
        }}
        onConfirm={async () => {
          const body = { name: name.trim(), email: email.trim(), live: isLive };
          const { link } = await unwrap(api.POST("/api/admin/merchants", { body }));
          setHanded({ name: body.name, email: body.email, link });
          setName("");
          setEmail("");
          setLive(false);
          await changed();
        }}
      >
        <p>{t("merchants.addWords")}</p>
        <Text label={t("common:projects.name")} required value={name} onText={setName} />
        <Text label={t("common:signIn.email")} type="email" required value={email} onText={setEmail} />
        <Switch
          label={t("merchants.grant")}
          checked={isLive}
          onChange={(event) => {
            setLive(event.currentTarget.checked);
          }}
        />
      </ActButton>
      <LinkOnce
        title={t("merchants.added")}
        handed={handed}
        onClose={() => {
          setHanded(null);
        }}
      />
    </>
  );
}
