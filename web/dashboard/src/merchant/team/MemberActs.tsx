import { useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { Confirm } from "../../ui/Confirm";
import { useOpened } from "../../ui/useOpened";
import { api, merchantSession, unwrap } from "../api";

import { membersQuery, type MadeLink, type Member } from "./queries";

/** Gives up one's own access. The last owner is refused by the API. */
export function Leave({ member }: { readonly member: Member }) {
  const { t } = useTranslation();
  const { open, close, opener } = useOpened<"leave">();
  return (
    <>
      {opener("leave", t("team.leave"))}
      {open !== null && (
        <Confirm
          title={t("team.leaveTitle")}
          act={t("team.leave")}
          typed={member.email}
          isDangerous
          onConfirm={async () => {
            await unwrap(api.POST("/api/dashboard/members/leave"));
            await merchantSession.end();
          }}
          onClose={close}
        >
          <p>{t("team.leaveWords")}</p>
        </Confirm>
      )}
    </>
  );
}

interface LetBackInProps {
  readonly member: Member;
  /** Takes the link by which they set a password; null once it is asked for, so that no other is taken for it. */
  readonly onLink: (made: MadeLink | null) => void;
}

/** Lets a member back in who lost the authenticator. */
export function LetBackIn({ member: { memberId, name }, onLink }: LetBackInProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const { open, close, opener } = useOpened<"recover">();
  return (
    <>
      {opener("recover", t("team.recover"))}
      {open !== null && (
        <Confirm
          title={t("team.recoverTitle", { name })}
          act={t("team.recover")}
          isDangerous
          onConfirm={async () => {
            const path = "/api/dashboard/members/{memberId}/two-factor/reset";
            onLink(null);
            const { link } = await unwrap(api.POST(path, { params: { path: { memberId } } }));
            onLink({ name, link });
            void client.invalidateQueries(membersQuery);
          }}
          onClose={close}
        >
          <p>{t("team.recoverWords")}</p>
        </Confirm>
      )}
    </>
  );
}

/** Takes a member's access away. */
export function Remove({ member: { memberId, name } }: { readonly member: Member }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const { open, close, opener } = useOpened<"remove">();
  return (
    <>
      {opener("remove", t("team.remove"))}
      {open !== null && (
        <Confirm
          title={t("team.removeTitle", { name })}
          act={t("team.remove")}
          isDangerous
          onConfirm={async () => {
            await unwrap(api.DELETE("/api/dashboard/members/{memberId}", { params: { path: { memberId } } }));
            void client.invalidateQueries(membersQuery);
          }}
          onClose={close}
        >
          <p>{t("team.removeWords")}</p>
        </Confirm>
      )}
    </>
  );
}
