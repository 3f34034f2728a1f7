import { Select, Switch } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Text } from "../../ui/Text";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords } from "../api";
import { useChainOptions } from "../queries";

interface AddTokenProps {
  /** Told of which chain one was added. */
  readonly onAdded: (chain: string) => void;
}

/** Has a token looked up on its chain, and taken. */
export function AddToken({ onAdded }: AddTokenProps) {
  const { t } = useWords();
  const client = useQueryClient();
  const chains = useChainOptions("live");
  const [chain, setChain] = useState<string | null>(null);
  const [contract, setContract] = useState("");
  const [isForAll, setForAll] = useState(true);
  const [replaces, setReplaces] = useState(false);
  return (
    <ActButton
      act={t("tokens.add")}
      title={t("tokens.addTitle")}
      onConfirm={async () => {
        const of = chain ?? "";
        const body = { chain: of, contract: contract.trim(), defaultEnabled: isForAll, replaces };
        await unwrap(api.POST("/api/admin/tokens", { body }));
        setContract("");
        setReplaces(false);
        await client.invalidateQueries({ queryKey: ["tokens"] });
        onAdded(of);
      }}
    >
      <p>{t("tokens.addWords")}</p>
      <Select label={t("record.chain")} required data={chains} value={chain} onChange={setChain} />
      <Text
        label={t("tokens.contract")}
        required
        autoComplete="off"
        spellCheck={false}
        value={contract}
        onText={setContract}
      />
      <Switch
        label={t("tokens.forAll")}
        checked={isForAll}
        onChange={(event) => {
          setForAll(event.currentTarget.checked);
        }}
      />
      <Switch
        label={t("tokens.replaces")}
        description={t("tokens.replacesWords")}
        checked={replaces}
        onChange={(event) => {
          setReplaces(event.currentTarget.checked);
        }}
      />
    </ActButton>
  );
}
