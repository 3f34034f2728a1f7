import { PasswordSection } from "../../ui/PasswordSection";
import { api, merchantSession, unwrap } from "../api";

/** Changing the password. The second factor need not be on. */
export function Password() {
  return (
    <PasswordSection
      session={merchantSession}
      onChange={({ totpCode, ...body }) =>
        unwrap(api.POST("/api/auth/password", { body: totpCode === "" ? body : { ...body, totpCode } }))
      }
    />
  );
}
