import { queryOptions, useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { asApiError } from "../../api/errors";
import { QueryView } from "../../ui/QueryView";
import { SetPassword } from "../../ui/SetPassword";
import { useLinkToken } from "../../ui/useLinkToken";
import { api, unwrap } from "../api";

/** Where an invitation leads: who invites, and to what, and the password with which somebody joins. */
export function Join() {
  const { t } = useTranslation();
  const token = useLinkToken();
  const read = useQuery(
    queryOptions({
      queryKey: ["invitation", token],
      enabled: token !== "",
      staleTime: Infinity,
      gcTime: 0,
      queryFn: () => unwrap(api.POST("/api/auth/invitations/read", { body: { token } })),
    }),
  );
  const isOver = read.error !== null && asApiError(read.error).code === "INVITATION_INVALID";
  return (
    <SetPassword
      key={token}
      title={t("join.title")}
      token={token}
      act={t("join.act")}
      done={t("join.done")}
      email={read.data?.invitation.email}
      isOver={isOver}
      onSet={(password) => unwrap(api.POST("/api/auth/invitations/accept", { body: { token, password } }))}
    >
      {token !== "" && (
        <QueryView query={read} lines={2}>
          {({ invitation }) => (
            <p>
              {t("join.words", {
                merchant: invitation.merchantName,
                email: invitation.email,
                role: t(`role.${invitation.role}`),
              })}
            </p>
          )}
        </QueryView>
      )}
    </SetPassword>
  );
}
