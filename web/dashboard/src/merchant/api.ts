/** The API as a merchant's pages use it. */
import { clientOf } from "../api/client";
import type { paths } from "../api/generated/dashboard";
import { MERCHANT_PATHS, Session } from "../api/session";

export { unwrap } from "../api/client";

export const merchantSession = new Session(MERCHANT_PATHS);

export const api = clientOf<paths>(merchantSession);
