import type api from "./en/api.json";
import type common from "./en/common.json";
import type operator from "./en/operator.json";

declare module "i18next" {
  interface CustomTypeOptions {
    defaultNS: "common";
    resources: { common: typeof common; operator: typeof operator; api: typeof api };
  }
}
