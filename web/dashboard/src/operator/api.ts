/** The API as operators' pages use it. */
import { useTranslation } from "react-i18next";

import { clientOf } from "../api/client";
import type { components, operations, paths } from "../api/generated/operator";
import { OPERATOR_PATHS, Session } from "../api/session";

export { unwrap } from "../api/client";

export type Schemas = components["schemas"];
export type Operations = operations;

export const operatorSession = new Session(OPERATOR_PATHS);

export const api = clientOf<paths>(operatorSession);

/** Return the words of the operators' app; those of both apps are named `common:`. */
export function useWords() {
  return useTranslation(["operator", "common"]);
}
