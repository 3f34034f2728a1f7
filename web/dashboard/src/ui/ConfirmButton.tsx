import { Button } from "@mantine/core";
import { useState, type ReactNode } from "react";

import { Confirm } from "./Confirm";

interface ConfirmButtonProps {
  readonly act: string;
  readonly title: string;
  readonly onConfirm: () => Promise<unknown>;
  readonly children: ReactNode;
}

/** A row's act that cannot be taken back: its button, and the dialog that asks before it is done. */
export function ConfirmButton({ act, title, onConfirm, children }: ConfirmButtonProps) {
  const [isAsked, setAsked] = useState(false);
  return (
    <>
      <Button
        variant="default"
        size="compact-sm"
        onClick={() => {
          setAsked(true);
        }}
      >
        {act}
      </Button>
      {isAsked && (
        <Confirm
          title={title}
          act={act}
          isDangerous
          onConfirm={onConfirm}
          onClose={() => {
            setAsked(false);
          }}
        >
          {children}
        </Confirm>
      )}
    </>
  );
}
