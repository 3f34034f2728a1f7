import { SignInCover } from "../../ui/SignInCover";

import { SignIn } from "./SignIn";

/** Signing in over a page on which something is typed. */
export function SignInAgain() {
  return (
    <SignInCover>
      <SignIn isAgain />
    </SignInCover>
  );
}
