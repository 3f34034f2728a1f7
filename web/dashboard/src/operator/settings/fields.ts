import type { Schemas } from "../api";

export type Settings = Schemas["PlatformSettingsAnswer"];
export type Patch = Schemas["PlatformPatch"];
export type Value = boolean | string | number;

export interface Field {
  /** As the API writes it, which is also the key of its words. */
  readonly name: string;
  readonly kind: "switch" | "whole" | "decimal" | "percent";
  /** What it is so many of. */
  readonly unit?: "usd" | "hour" | "minute";
  readonly read: (settings: Settings) => Value;
  readonly patch: (value: Value) => Patch;
}

type Group = "collection" | "exchanges";

/** A setting of a group; groups are changed field by field. */
function within<Name extends Group>(
  group: Name,
  name: keyof Settings[Name] & string,
  kind: Field["kind"],
  unit?: NonNullable<Field["unit"]>,
): Field {
  return {
    name,
    kind,
    ...(unit === undefined ? {} : { unit }),
    read: (settings) => settings[group][name] as Value,
    patch: (value) => ({ [group]: { [name]: value } }),
  };
}

/** A setting of the usage credits. */
function ofCredits(name: "initialAllowance" | "floor"): Field {
  return {
    name,
    kind: "whole",
    read: ({ cpt }) => cpt[name],
    patch: (value) => ({ cpt: { [name]: value } }),
  };
}

/** What one of those costs that cost the same on every chain. */
function weightOf(name: "tracker" | "webhookDelivery"): Field {
  return {
    name,
    kind: "whole",
    read: ({ cpt }) => cpt.weights[name],
    patch: (value) => ({ cpt: { weights: { [name]: value } } }),
  };
}

/** The settings that are one value each. Lists and maps have tables of their own. */
export const GROUPS: readonly {
  readonly title: "payouts" | "collection" | "exchanges" | "credits";
  readonly fields: readonly Field[];
}[] = [
  {
    title: "payouts",
    fields: [
      {
        name: "payoutEnabled",
        kind: "switch",
        read: (settings) => settings.payoutEnabled,
        patch: (value) => ({ payoutEnabled: value === true }),
      },
      {
        name: "payoutSwapEnabled",
        kind: "switch",
        read: (settings) => settings.payoutSwapEnabled,
        patch: (value) => ({ payoutSwapEnabled: value === true }),
      },
      {
        name: "payoutMinimumFees",
        kind: "whole",
        read: (settings) => settings.payoutMinimumFees,
        patch: (value) => ({ payoutMinimumFees: Number(value) }),
      },
    ],
  },
  {
    title: "collection",
    fields: [
      within("collection", "enabled", "switch"),
      within("collection", "minValueUsd", "decimal", "usd"),
      within("collection", "maxFeeShareBps", "percent"),
      within("collection", "maxAgeHours", "whole", "hour"),
      within("collection", "batched", "switch"),
    ],
  },
  {
    title: "exchanges",
    fields: [
      within("exchanges", "swapEnabled", "switch"),
      within("exchanges", "bridgeEnabled", "switch"),
      within("exchanges", "swapFeeBps", "percent"),
      within("exchanges", "bridgeFeeBps", "percent"),
      within("exchanges", "autoConvertMarkupBps", "percent"),
      within("exchanges", "defaultSlippageBps", "percent"),
      within("exchanges", "priceGuardBps", "percent"),
      within("exchanges", "validMinutes", "whole", "minute"),
      within("exchanges", "autoConvertMinUsd", "decimal", "usd"),
    ],
  },
  {
    title: "credits",
    fields: [ofCredits("initialAllowance"), ofCredits("floor"), weightOf("tracker"), weightOf("webhookDelivery")],
  },
];
