import { Button } from "@mantine/core";
import { useState, type ReactNode } from "react";

import { Confirm } from "../ui/Confirm";
import { Text } from "../ui/Text";

import { useWords } from "./api";

/** Something that an operator does. */
export interface Act {
  /** What the button says, and what is confirmed. */
  readonly act: string;
  readonly title: string;
  /** What will happen, in plain words, and fields of the dialog's own. */
  readonly children: ReactNode;
  readonly isDangerous?: boolean;
  /** What the dialog's own fields say is not settled. */
  readonly isBlocked?: boolean;
  /** What has to be typed first, for what cannot be undone. */
  readonly typed?: string;
  /** What the other button says, where the act is itself some cancelling. */
  readonly dismiss?: string;
  /** Whether the audit log wants a reason. */
  readonly wantsReason?: boolean;
  /** Lets the dialog's own fields begin with what is so now. */
  readonly onOpen?: () => void;
  readonly onConfirm: (reason: string) => Promise<unknown>;
}

interface ActButtonProps extends Act {
  readonly isSmall?: boolean;
  /** Whether it is what somebody comes for, of several that stand beside each other. */
  readonly isMain?: boolean;
}

/** A button for something that an operator does, which says first what will happen. */
export function ActButton({ isSmall = false, isMain = false, ...one }: ActButtonProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        variant={isMain ? "filled" : "default"}
        size={isSmall ? "compact-sm" : "sm"}
        onClick={() => {
          one.onOpen?.();
          setOpen(true);
        }}
      >
        {one.act}
      </Button>
      {isOpen && (
        <ActDialog
          {...one}
          onClose={() => {
            setOpen(false);
          }}
        />
      )}
    </>
  );
}

interface ActDialogProps extends Omit<Act, "onOpen"> {
  readonly onClose: () => void;
}

/** Says what will happen, and takes the reason where one is wanted. Mounted while it is open. */
export function ActDialog({ children, wantsReason = false, onConfirm, ...one }: ActDialogProps) {
  const { t } = useWords();
  const [reason, setReason] = useState("");
  return (
    <Confirm {...one} onConfirm={() => onConfirm(reason.trim())}>
      {children}
      {wantsReason && (
        <Text
          label={t("act.reason")}
          description={t("act.reasonWords")}
          required
          maxLength={200}
          value={reason}
          onText={setReason}
        />
      )}
    </Confirm>
  );
}
