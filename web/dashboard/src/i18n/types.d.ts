import type en from "./en/common.json";
import type operator from "./en/operator.json";

declare module "i18next" {
  interface CustomTypeOptions {
    defaultNS: "common";
    resources: { common: typeof en; operator: typeof operator };
  }
}
