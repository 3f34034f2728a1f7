import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useChainName } from "../../ui/ChainName";
import { Choice } from "../../ui/Choice";
import { api, unwrap, useWords, type Schemas } from "../api";
import { MerchantField, NOT_CHOSEN, type Concerned } from "../merchants/MerchantSelect";
import { RowActs, type RowAct } from "../RowActs";

export type Token = Schemas["AdminToken"];
type Patch = Schemas["TokenPatch"];

/** What can be decided about a token: for one merchant, for those of whom nothing else was decided, and for all. */
export function TokenActs({ token }: { readonly token: Token }) {
  if (token.symbol === null || (token.state !== "enabled" && token.state !== "disabled")) return null;
  return <Decided token={{ ...token, symbol: token.symbol }} />;
}

interface NamedProps {
  readonly token: Token & { readonly symbol: string };
}

function Decided({ token }: NamedProps) {
  const chainName = useChainName();
  const forOne = useForOne({ token });
  const forAll = useForAll({ token });
  const switched = useSwitch({ token });
  const acts = token.state === "enabled" ? [forOne, forAll, switched] : [switched];
  return <RowActs of={`${token.symbol} · ${chainName(token.chain)}`} acts={acts} />;
}

/** Return what it is called in sentences, and what changes it. */
function useToken({ chain, symbol }: NamedProps["token"]) {
  const client = useQueryClient();
  const chainName = useChainName();
  return {
    names: { symbol, chain: chainName(chain) },
    change: async (body: Patch) => {
      const params = { path: { chain, symbol } };
      await unwrap(api.PATCH("/api/admin/tokens/{chain}/{symbol}", { params, body }));
      await client.invalidateQueries({ queryKey: ["tokens"] });
    },
  };
}

const DECISIONS = ["on", "off", "asAll"] as const;
type Decision = (typeof DECISIONS)[number];
const DECIDED: Readonly<Record<Decision, boolean | null>> = { on: true, off: false, asAll: null };

/** Decides for one merchant, whatever holds for all, or has it again what all have. */
function useForOne({ token }: NamedProps): RowAct {
  const { t } = useWords();
  const { names, change } = useToken(token);
  const [merchantId, setMerchantId] = useState<Concerned>(NOT_CHOSEN);
  const isChosen = merchantId !== null && merchantId !== NOT_CHOSEN;
  const [decision, setDecision] = useState<Decision>("on");
  return {
    id: "one",
    act: t("tokens.forOne"),
    title: t("tokens.forOneTitle", names),
    onOpen: () => {
      setMerchantId(NOT_CHOSEN);
      setDecision(token.defaultEnabled ? "off" : "on");
    },
    isBlocked: !isChosen,
    onConfirm: async () => {
      if (isChosen) await change({ merchants: { [merchantId]: DECIDED[decision] } });
    },
    children: (
      <>
        <p>{t("tokens.forOneWords")}</p>
        <MerchantField value={merchantId} onConcerned={setMerchantId} />
        <Choice
          label={t("tokens.forOne")}
          value={decision}
          options={DECISIONS.map((one) => ({ value: one, label: t(`tokens.decisions.${one}`) }))}
          onChoice={setDecision}
        />
      </>
    ),
  };
}

/** Changes whether merchants have it for whom nothing else was decided. */
function useForAll({ token }: NamedProps): RowAct {
  const { t } = useWords();
  const { names, change } = useToken(token);
  const { defaultEnabled } = token;
  return {
    id: "all",
    isDangerous: defaultEnabled,
    act: t(defaultEnabled ? "tokens.toNobody" : "tokens.toEverybody"),
    title: t(defaultEnabled ? "tokens.toNobodyTitle" : "tokens.toEverybodyTitle", names),
    onConfirm: () => change({ defaultEnabled: !defaultEnabled }),
    children: <p>{t(defaultEnabled ? "tokens.toNobodyWords" : "tokens.toEverybodyWords")}</p>,
  };
}

function useSwitch({ token }: NamedProps): RowAct {
  const { t } = useWords();
  const { names, change } = useToken(token);
  const isOn = token.state === "enabled";
  return {
    id: "switch",
    isDangerous: isOn,
    act: t(isOn ? "tokens.off" : "tokens.on"),
    title: t(isOn ? "tokens.offTitle" : "tokens.onTitle", names),
    onConfirm: () => change({ enabled: !isOn }),
    children: <p>{t(isOn ? "tokens.offWords" : "tokens.onWords")}</p>,
  };
}
