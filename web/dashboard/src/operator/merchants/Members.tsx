import { useState } from "react";

import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { Chip } from "../../ui/Status";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { LinkOnce, type Handed } from "../LinkOnce";
import { usePermitted } from "../queries";

import { useMerchantsChanged } from "./queries";

type Member = Schemas["MemberView"];

/** The people of a merchant, and letting back in who is locked out. */
export function Members({ members }: { readonly members: readonly Member[] }) {
  const { t } = useWords();
  const mayRecover = usePermitted("merchants.recover");
  const [handed, setHanded] = useState<Handed | null>(null);
  return (
    <Section title={t("merchants.members")} flush>
      <LinkOnce
        title={t("people.linkTitle")}
        handed={handed}
        onClose={() => {
          setHanded(null);
        }}
      />
      <Plain
        label={t("merchants.members")}
        rows={members}
        rowKey={(one) => one.memberId}
        columns={[
          { id: "name", title: t("common:projects.name"), cell: (one) => <b>{one.name}</b> },
          { id: "email", title: t("common:signIn.email"), cell: (one) => one.email },
          { id: "role", title: t("common:team.role"), cell: (one) => t(`common:role.${one.role}`) },
          {
            id: "factor",
            title: t("merchants.twoFactor"),
            cell: (one) => (
              <Chip tone={one.hasTwoFactor ? "good" : "care"}>
                {t(one.hasTwoFactor ? "merchants.on" : "merchants.off")}
              </Chip>
            ),
          },
          {
            id: "acts",
            title: "",
            atEnd: true,
            cell: (one) => mayRecover && <LetBackIn member={one} onHanded={setHanded} />,
          },
        ]}
      />
    </Section>
  );
}

interface LetBackInProps {
  readonly member: Member;
  readonly onHanded: (handed: Handed | null) => void;
}

/** What is done for somebody who lost the password or the authenticator. */
function LetBackIn({ member, onHanded }: LetBackInProps) {
  const { t } = useWords();
  const changed = useMerchantsChanged();
  const { name, email } = member;
  // A link that somebody else was given is not taken for the one that this act gives.
  const begin = () => {
    onHanded(null);
  };
  return (
    <span className="row end">
      <ActButton
        isSmall
        act={t("people.newLink")}
        title={t("people.newLinkTitle", { name })}
        onOpen={begin}
        onConfirm={async () => {
          const { link } = await unwrap(api.POST("/api/admin/password-resets", { body: { email } }));
          onHanded({ name, email, link });
        }}
      >
        <p>{t("merchants.newLinkWords")}</p>
      </ActButton>
      {member.hasTwoFactor && (
        <ActButton
          isSmall
          isDangerous
          act={t("people.reset")}
          title={t("people.resetTitle", { name })}
          typed={email}
          onOpen={begin}
          onConfirm={async () => {
            await unwrap(api.POST("/api/admin/merchants/two-factor/reset", { body: { email } }));
            await changed();
          }}
        >
          <p>{t("merchants.resetWords")}</p>
        </ActButton>
      )}
    </span>
  );
}
