import { Button, Modal } from "@mantine/core";
import { useState } from "react";

import { useIsBelow } from "../../ui/above";
import { useChainName } from "../../ui/ChainName";
import { CopyButton } from "../../ui/CopyButton";
import { useWords } from "../api";

import type { Token } from "./TokenActs";

/** What the signer's file lacks of a token, to be copied there; nothing where it lacks nothing, or has not said so yet. */
export function SignerLines({ token: { chain, symbol, signerLines } }: { readonly token: Token }) {
  const { t } = useWords();
  const chainName = useChainName();
  const isBelow = useIsBelow();
  const [isOpen, setOpen] = useState(false);
  if (signerLines === null || symbol === null) return null;
  const title = t("tokens.linesTitle", { symbol, chain: chainName(chain) });
  return (
    <div>
      <Button
        variant="default"
        size="compact-sm"
        onClick={() => {
          setOpen(true);
        }}
      >
        {t("tokens.lines")}
      </Button>
      {isOpen && (
        <Modal
          opened
          size="lg"
          title={title}
          onClose={() => {
            setOpen(false);
          }}
          closeOnEscape={!isBelow}
          closeButtonProps={{ "aria-label": t("common:ui.close") }}
        >
          <div className="stack">
            <p>{t("tokens.linesWords")}</p>
            <pre className="code" tabIndex={0}>
              {signerLines}
            </pre>
            <div>
              <CopyButton text={signerLines} of={title} />
            </div>
            <p>{t("tokens.linesCap", { name: `"${chain}/${symbol}"` })}</p>
          </div>
        </Modal>
      )}
    </div>
  );
}
