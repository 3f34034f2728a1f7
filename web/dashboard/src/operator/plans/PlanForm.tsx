import { Checkbox, NumberInput, Switch } from "@mantine/core";

import { AmountText } from "../../ui/AmountText";
import { Text } from "../../ui/Text";
import { useWords, type Schemas } from "../api";
import { useChainOptions } from "../queries";

type NewPlan = Schemas["NewPlan"];

/** A number in a form; empty while nothing is typed. */
type Typed = number | "";

/** A plan while it is written. A number that is left out is null: no bound of its own, or nothing of it. */
export interface Draft extends Required<Omit<NewPlan, "isDefault" | "maxWebhooks" | "maxAddresses">> {
  readonly maxWebhooks: Typed;
  readonly maxAddresses: Typed;
}

export const BLANK: Draft = {
  name: "",
  hasTracker: true,
  maxWebhooks: 10,
  maxAddresses: 1000,
  chains: null,
  requestsPerMinute: null,
  cptPerMonth: null,
  priceUsd: null,
  isPublic: true,
};

const REQUIRED = [
  ["maxWebhooks", 0],
  ["maxAddresses", 1],
] as const;
const WHOLE = ["requestsPerMinute", "cptPerMonth"] as const;

interface PlanFormProps {
  readonly draft: Draft;
  readonly onDraft: (draft: Draft) => void;
}

/** What a plan allows. */
export function PlanForm({ draft, onDraft }: PlanFormProps) {
  const { t } = useWords();
  const chains = useChainOptions();
  const set = (changed: Partial<Draft>) => {
    onDraft({ ...draft, ...changed });
  };
  return (
    <>
      <Text
        label={t("record.name")}
        required
        autoComplete="off"
        value={draft.name}
        onText={(name) => {
          set({ name });
        }}
      />
      <Switch
        label={t("plans.hasTracker")}
        checked={draft.hasTracker}
        onChange={(event) => {
          set({ hasTracker: event.currentTarget.checked });
        }}
      />
      {draft.hasTracker && (
        <Checkbox.Group
          label={t("plans.chains")}
          description={t("plans.chainsWords")}
          value={[...(draft.chains ?? [])]}
          onChange={(chosen) => {
            set({ chains: chosen.length === 0 ? null : chosen });
          }}
        >
          <div className="choices">
            {chains.map((one) => (
              <Checkbox key={one.value} value={one.value} label={one.label} />
            ))}
          </div>
        </Checkbox.Group>
      )}
      {REQUIRED.map(([name, min]) => (
        <NumberInput
          key={name}
          label={t(`plans.${name}`)}
          required
          min={min}
          allowDecimal={false}
          allowNegative={false}
          value={draft[name]}
          onChange={(value) => {
            set({ [name]: typed(value) });
          }}
        />
      ))}
      {WHOLE.map((name) => (
        <NumberInput
          key={name}
          label={t(`plans.${name}`)}
          description={t(`plans.${name}Words`)}
          min={1}
          allowDecimal={false}
          allowNegative={false}
          value={draft[name] ?? ""}
          onChange={(value) => {
            const number = typed(value);
            set({ [name]: number === "" ? null : number });
          }}
        />
      ))}
      <AmountText
        label={t("plans.priceUsd")}
        value={draft.priceUsd ?? ""}
        onText={(text) => {
          set({ priceUsd: text.trim() === "" ? null : text.trim() });
        }}
      />
      <Switch
        label={t("plans.isPublic")}
        checked={draft.isPublic}
        onChange={(event) => {
          set({ isPublic: event.currentTarget.checked });
        }}
      />
    </>
  );
}

function typed(value: number | string): Typed {
  return value === "" ? "" : Number(value);
}

/** Return what is sent of a draft whose form was submitted: a browser submits none in which a required number is empty. */
export function written({ maxWebhooks, maxAddresses, ...rest }: Draft): Required<Omit<NewPlan, "isDefault">> {
  return {
    ...rest,
    name: rest.name.trim(),
    // Many write decimals behind a comma.
    priceUsd: rest.priceUsd?.replace(",", ".") ?? null,
    maxWebhooks: Number(maxWebhooks),
    maxAddresses: Number(maxAddresses),
  };
}
