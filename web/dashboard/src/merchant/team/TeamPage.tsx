import { Select } from "@mantine/core";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Confirm } from "../../ui/Confirm";
import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Secret } from "../../ui/Secret";
import { Chip } from "../../ui/Status";
import { usePermitted } from "../project";
import { meQuery } from "../queries";

import { Invitations } from "./Invitations";
import { Leave, LetBackIn, Remove } from "./MemberActs";
import { OpenProjects } from "./OpenProjects";
import { isRole, membersQuery, rolesGivenBy, type MadeLink, type Member, type Role } from "./queries";
import { useMemberChange } from "./useMemberChange";

/** The people of the merchant: who they are, what each may do, and who is invited. */
export function TeamPage() {
  const { t } = useTranslation();
  const query = useQuery(membersQuery);
  const mayManage = usePermitted("team.manage");
  const mayRecover = usePermitted("team.recover");
  const [made, setMade] = useState<MadeLink | null>(null);
  const { member: me } = useSuspenseQuery(meQuery).data;
  const mayGive = rolesGivenBy(me.role);
  const mayChange = (one: Member) => mayManage && one.memberId !== me.memberId && mayGive.includes(one.role);
  return (
    <Page title={t("team.title")} lead={t("team.lead")}>
      {made !== null && (
        <Section title={t("team.recover")}>
          <div className="stack">
            <p role="alert">{t("team.recoverLink", { name: made.name })}</p>
            <Secret text={made.link} />
          </div>
        </Section>
      )}
      <Section title={t("team.members")} flush>
        <QueryView query={query}>
          {(members) => (
            <Plain
              label={t("team.members")}
              rows={members}
              rowKey={(one) => one.memberId}
              columns={[
                { id: "name", title: t("projects.name"), cell: (one) => <b>{one.name}</b> },
                { id: "email", title: t("signIn.email"), cell: (one) => one.email },
                {
                  id: "role",
                  title: t("team.role"),
                  cell: (one) => (mayChange(one) ? <ChangeRole member={one} roles={mayGive} /> : t(`role.${one.role}`)),
                },
                {
                  id: "projects",
                  title: t("team.projects"),
                  cell: (one) => <OpenProjects member={one} mayManage={mayChange(one)} />,
                },
                {
                  id: "factor",
                  title: t("twoFactor.title"),
                  cell: (one) =>
                    one.hasTwoFactor ? (
                      <Chip tone="good">{t("twoFactor.on")}</Chip>
                    ) : (
                      <Chip tone="care">{t("team.noFactor")}</Chip>
                    ),
                },
                {
                  id: "acts",
                  title: "",
                  atEnd: true,
                  cell: (one) =>
                    one.memberId === me.memberId ? (
                      <Leave member={one} />
                    ) : (
                      <span className="row end">
                        {mayRecover && <LetBackIn member={one} onLink={setMade} />}
                        {mayChange(one) && <Remove member={one} />}
                      </span>
                    ),
                },
              ]}
            />
          )}
        </QueryView>
      </Section>
      <Invitations mayManage={mayManage} />
    </Page>
  );
}

function ChangeRole({ member, roles }: { readonly member: Member; readonly roles: readonly Role[] }) {
  const { t } = useTranslation();
  const [role, setRole] = useState<Role | null>(null);
  const { begin, change, meanwhile } = useMemberChange(member);
  return (
    <>
      <Select
        aria-label={t("team.roleOf", { name: member.name })}
        data={roles.map((one) => ({ value: one, label: t(`role.${one}`) }))}
        value={member.role}
        onChange={(value) => {
          if (!isRole(value) || value === member.role) return;
          begin();
          setRole(value);
        }}
      />
      {role !== null && (
        <Confirm
          title={t("team.roleTitle", { name: member.name })}
          act={t("team.change")}
          onConfirm={() => change({ role })}
          onClose={() => {
            setRole(null);
          }}
        >
          {meanwhile}
          <p>{t(`roleWords.${role}`)}</p>
        </Confirm>
      )}
    </>
  );
}
