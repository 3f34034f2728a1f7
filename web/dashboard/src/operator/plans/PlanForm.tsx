import { Checkbox, NumberInput, Switch } from "@mantine/core";

import { Text } from "../../ui/Text";
import { useWords, type Schemas } from "../api";
import { useChainOptions } from "../queries";

type NewPlan = Schemas["NewPlan"];

/** A plan while it is written. A number that is left out is null: no bound of its own, or nothing of it. */
export type Draft = Required<Omit<NewPlan, "isDefault">>;

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
      <NumberInput
        label={t("plans.maxWebhooks")}
        required
        min={0}
        allowDecimal={false}
        value={draft.maxWebhooks}
        onChange={(value) => {
          set({ maxWebhooks: Number(value) });
        }}
      />
      <NumberInput
        label={t("plans.maxAddresses")}
        required
        min={1}
        allowDecimal={false}
        value={draft.maxAddresses}
        onChange={(value) => {
          set({ maxAddresses: Number(value) });
        }}
      />
      {WHOLE.map((name) => (
        <NumberInput
          key={name}
          label={t(`plans.${name}`)}
          description={t(`plans.${name}Words`)}
          min={1}
          allowDecimal={false}
          value={draft[name] ?? ""}
          onChange={(value) => {
            set({ [name]: value === "" ? null : Number(value) });
          }}
        />
      ))}
      <Text
        label={t("plans.priceUsd")}
        inputMode="decimal"
        autoComplete="off"
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
