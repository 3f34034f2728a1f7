import { NewPassword } from "../../ui/NewPassword";
import { api, unwrap } from "../api";

/** Where the link leads that whoever runs the gateway, or an owner, gives to somebody. */
export function SetPassword() {
  return <NewPassword onSet={(body) => unwrap(api.POST("/api/auth/password-reset/confirm", { body }))} />;
}
