import { NewPassword } from "../../ui/NewPassword";
import { api, unwrap } from "../api";

/** Where an operator's one-time link leads. */
export function SetPassword() {
  return <NewPassword onSet={(body) => unwrap(api.POST("/api/admin/auth/set-password", { body }))} />;
}
