import { Select } from "@mantine/core";
import { useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Chip } from "../../ui/Status";
import { Text } from "../../ui/Text";
import { When } from "../../ui/When";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { LinkOnce, type Handed } from "../LinkOnce";
import { meQuery, operatorsQuery, usePermitted } from "../queries";
import { RowActs, type RowAct } from "../RowActs";

type Operator = Schemas["OperatorView"];
type Role = Operator["role"];

const ROLES = ["owner", "operator", "support", "auditor"] as const satisfies readonly Role[];

/** Who runs the gateway. Owners invite, change roles, let out and let back in. */
export function PeoplePage() {
  const { t } = useWords();
  const mayManage = usePermitted("operators.manage");
  const [handed, setHanded] = useState<Handed | null>(null);
  const query = useQuery(operatorsQuery);
  return (
    <Page title={t("nav.people")} lead={t("people.lead")} actions={mayManage && <Invite onHanded={setHanded} />}>
      <LinkOnce
        title={t("people.linkTitle")}
        handed={handed}
        onClose={() => {
          setHanded(null);
        }}
      />
      <Section flush>
        <QueryView query={query} lines={4}>
          {(operators) => (
            <Plain
              label={t("nav.people")}
              rows={operators}
              rowKey={(one) => one.operatorId}
              columns={[
                {
                  id: "name",
                  title: t("common:projects.name"),
                  cell: (one) => (
                    <>
                      <b>{one.name}</b>
                      <div className="muted">{one.email}</div>
                    </>
                  ),
                },
                { id: "role", title: t("common:team.role"), cell: (one) => t(`role.${one.role}`) },
                { id: "state", title: t("record.state"), cell: (one) => <State of={one} /> },
                { id: "since", title: t("common:payments.created"), cell: (one) => <When at={one.createdAt} /> },
                {
                  id: "acts",
                  title: "",
                  atEnd: true,
                  cell: (one) => mayManage && <Acts of={one} onHanded={setHanded} />,
                },
              ]}
            />
          )}
        </QueryView>
      </Section>
    </Page>
  );
}

function State({ of }: { readonly of: Operator }) {
  const { t } = useWords();
  if (of.disabledAt !== null) return <Chip tone="calm">{t("people.disabled")}</Chip>;
  return of.hasTwoFactor ? (
    <Chip tone="good">{t("people.active")}</Chip>
  ) : (
    <Chip tone="wait">{t("people.invited")}</Chip>
  );
}

interface LinkProps {
  readonly onHanded: (handed: Handed | null) => void;
}

function Invite({ onHanded }: LinkProps) {
  const { t } = useWords();
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("support");
  return (
    <ActButton
      act={t("people.invite")}
      title={t("people.invite")}
      onOpen={() => {
        onHanded(null);
      }}
      onConfirm={async () => {
        const body = { name: name.trim(), email: email.trim(), role };
        const { link } = await unwrap(api.POST("/api/admin/operators", { body }));
        setName("");
        setEmail("");
        await client.invalidateQueries({ queryKey: ["operators"] });
        onHanded({ name: body.name, email: body.email, link });
      }}
    >
      <p>{t("people.inviteWords")}</p>
      <Text label={t("common:projects.name")} required value={name} onText={setName} />
      <Text label={t("common:signIn.email")} type="email" required value={email} onText={setEmail} />
      <RoleSelect value={role} onRole={setRole} />
    </ActButton>
  );
}

interface RoleSelectProps {
  readonly value: Role;
  readonly onRole: (role: Role) => void;
}

function RoleSelect({ value, onRole }: RoleSelectProps) {
  const { t } = useWords();
  return (
    <Select
      label={t("common:team.role")}
      description={t(`people.roleWords.${value}`)}
      data={ROLES.map((one) => ({ value: one, label: t(`role.${one}`) }))}
      value={value}
      onChange={(chosen) => {
        const found = ROLES.find((one) => one === chosen);
        if (found !== undefined) onRole(found);
      }}
    />
  );
}

interface ActsProps extends LinkProps {
  readonly of: Operator;
}

function Acts({ of, onHanded }: ActsProps) {
  const { t } = useWords();
  const client = useQueryClient();
  const me = useSuspenseQuery(meQuery).data.operator.operatorId;
  const [role, setRole] = useState<Role>(of.role);
  const params = { path: { operatorId: of.operatorId } };
  const { name, email } = of;
  // A link that somebody else was given is not taken for the one that this act gives.
  const begin = () => {
    onHanded(null);
  };
  const changed = () => client.invalidateQueries({ queryKey: ["operators"] });
  if (of.operatorId === me) return <span className="muted">{t("people.you")}</span>;
  const enable: RowAct = {
    id: "enable",
    act: t("people.enable"),
    title: t("people.enableTitle", { name }),
    onOpen: begin,
    onConfirm: async () => {
      await unwrap(api.POST("/api/admin/operators/{operatorId}/enable", { params }));
      await changed();
    },
    children: <p>{t("people.enableWords")}</p>,
  };
  const changeRole: RowAct = {
    id: "role",
    act: t("people.changeRole"),
    title: t("people.changeRoleTitle", { name }),
    onOpen: () => {
      begin();
      setRole(of.role);
    },
    onConfirm: async () => {
      await unwrap(api.PATCH("/api/admin/operators/{operatorId}", { params, body: { role } }));
      await changed();
    },
    children: <RoleSelect value={role} onRole={setRole} />,
  };
  const newLink: RowAct = {
    id: "link",
    act: t("people.newLink"),
    title: t("people.newLinkTitle", { name }),
    onOpen: begin,
    onConfirm: async () => {
      const { link } = await unwrap(api.POST("/api/admin/operators/{operatorId}/link", { params }));
      onHanded({ name, email, link });
    },
    children: <p>{t("people.newLinkWords")}</p>,
  };
  const reset: RowAct = {
    id: "reset",
    isDangerous: true,
    act: t("people.reset"),
    title: t("people.resetTitle", { name }),
    onOpen: begin,
    onConfirm: async () => {
      const { link } = await unwrap(api.POST("/api/admin/operators/{operatorId}/two-factor/reset", { params }));
      await changed();
      onHanded({ name, email, link });
    },
    children: <p>{t("people.resetWords")}</p>,
  };
  const disable: RowAct = {
    id: "disable",
    isDangerous: true,
    act: t("people.disable"),
    title: t("people.disableTitle", { name }),
    onOpen: begin,
    onConfirm: async () => {
      await unwrap(api.POST("/api/admin/operators/{operatorId}/disable", { params }));
      await changed();
    },
    children: <p>{t("people.disableWords")}</p>,
  };
  const acts = of.disabledAt === null ? [changeRole, newLink, ...(of.hasTwoFactor ? [reset] : []), disable] : [enable];
  return <RowActs of={name} acts={acts} />;
}
