import { Button, Select } from "@mantine/core";
import { useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { api, unwrap } from "../api";
import { ConfirmButton } from "../../ui/ConfirmButton";
import { Empty, ErrorNote } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Secret } from "../../ui/Secret";
import { Text } from "../../ui/Text";
import { useAct } from "../../ui/useAct";
import { Moment } from "../../ui/When";
import { NeedsSecondFactor } from "../NeedsSecondFactor";
import { meQuery } from "../queries";

import { isUnchosen, ProjectChoice, type Opened } from "./OpenProjects";
import { invitationsQuery, isRole, mayBeLimited, rolesGivenBy, type MadeLink, type Role } from "./queries";

/** Who was invited and has not come yet; and inviting somebody, whose link is shown once. */
export function Invitations({ mayManage }: { readonly mayManage: boolean }) {
  const { t } = useTranslation();
  const query = useQuery(invitationsQuery);
  return (
    <>
      {mayManage && <Invite />}
      <Section title={t("team.invitations")} flush>
        <QueryView query={query} lines={2}>
          {(invitations) =>
            invitations.length === 0 ? (
              <Empty title={t("team.nobodyInvited")} />
            ) : (
              <Plain
                label={t("team.invitations")}
                rows={invitations}
                rowKey={(one) => one.invitationId}
                columns={[
                  { id: "name", title: t("projects.name"), cell: (one) => <b>{one.name}</b> },
                  { id: "email", title: t("signIn.email"), cell: (one) => one.email },
                  { id: "role", title: t("team.role"), cell: (one) => t(`role.${one.role}`) },
                  { id: "until", title: t("payment.expires"), cell: (one) => <Moment at={one.expiresAt} /> },
                  {
                    id: "revoke",
                    title: "",
                    atEnd: true,
                    cell: (one) => (mayManage ? <Revoke invitationId={one.invitationId} name={one.name} /> : null),
                  },
                ]}
              />
            )
          }
        </QueryView>
      </Section>
    </>
  );
}

function Invite() {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [opened, setOpened] = useState<Opened>(null);
  const [made, setMade] = useState<MadeLink | null>(null);
  const { member: me } = useSuspenseQuery(meQuery).data;
  const isLimitable = mayBeLimited(role);
  const invite = useAct(async () => {
    setMade(null); // the link of the last one must not be handed to the next
    const body = { name, email, role, ...(isLimitable && opened !== null ? { projectIds: [...opened] } : {}) };
    const { link } = await unwrap(api.POST("/api/dashboard/invitations", { body }));
    setMade({ name, link });
    setName("");
    setEmail("");
    setOpened(null);
    void client.invalidateQueries(invitationsQuery);
  });
  return (
    <Section title={t("team.invite")}>
      <form className="stack" onSubmit={invite.submit}>
        <NeedsSecondFactor always />
        <Text label={t("projects.name")} required value={name} error={invite.error?.of("name")} onText={setName} />
        <Text
          label={t("signIn.email")}
          type="email"
          required
          value={email}
          error={invite.error?.of("email")}
          onText={setEmail}
        />
        <Select
          label={t("team.role")}
          description={t(`roleWords.${role}`)}
          data={rolesGivenBy(me.role).map((one) => ({ value: one, label: t(`role.${one}`) }))}
          value={role}
          onChange={(value) => {
            if (isRole(value)) setRole(value);
          }}
        />
        {isLimitable && <ProjectChoice opened={opened} onOpened={setOpened} />}
        {invite.error !== null && <ErrorNote error={invite.error} />}
        <div className="row">
          <Button type="submit" loading={invite.isRunning} disabled={isLimitable && isUnchosen(opened)}>
            {t("team.inviteAct")}
          </Button>
        </div>
        {made !== null && (
          <div className="stack">
            <p role="alert">{t("team.link", { name: made.name })}</p>
            <Secret text={made.link} />
          </div>
        )}
      </form>
    </Section>
  );
}

interface RevokeProps {
  readonly invitationId: string;
  readonly name: string;
}

function Revoke({ invitationId, name }: RevokeProps) {
  const { t } = useTranslation();
  const client = useQueryClient();

  async function revoke(): Promise<void> {
    await unwrap(api.DELETE("/api/dashboard/invitations/{invitationId}", { params: { path: { invitationId } } }));
    void client.invalidateQueries(invitationsQuery);
  }

  return (
    <ConfirmButton act={t("team.withdraw")} title={t("team.withdrawTitle", { name })} onConfirm={revoke}>
      <p>{t("team.withdrawWords")}</p>
    </ConfirmButton>
  );
}
