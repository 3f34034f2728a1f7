import { Button } from "@mantine/core";
import { useState } from "react";

/** Which one of several dialogs is open, and buttons that open them. */
export function useOpened<What extends string>() {
  const [open, setOpen] = useState<What | null>(null);
  return {
    open,
    close: () => {
      setOpen(null);
    },
    opener: (what: What, label: string) => (
      <Button
        variant="default"
        onClick={() => {
          setOpen(what);
        }}
      >
        {label}
      </Button>
    ),
  };
}
