import { Button } from "@mantine/core";
import { useId, useState, type ReactNode } from "react";

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
  /** What the dialog's own fields say is not complete. */
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
  /** Why it cannot be done just now, where it cannot. */
  readonly whyNot?: string | undefined;
}

/**
 * A button for something that an operator does, which says first what will happen, or beside itself why it cannot. Where
 * it turns into one for another act, as what was asked for is done, by somebody else too, the dialog is gone with its act.
 */
export function ActButton({ isSmall = false, isMain = false, whyNot, ...one }: ActButtonProps) {
  const [opened, setOpened] = useState<string | null>(null);
  const reasonId = useId();
  const isOff = whyNot !== undefined;
  // Whoever confirms, or tries once more what got no answer, does what was read, and never the opposite.
  if (opened !== null && opened !== one.act) setOpened(null);
  return (
    <>
      <Button
        variant={isMain ? "filled" : "default"}
        size={isSmall ? "compact-sm" : "sm"}
        disabled={isOff}
        aria-describedby={isOff ? reasonId : undefined}
        onClick={() => {
          one.onOpen?.();
          setOpened(one.act);
        }}
      >
        {one.act}
      </Button>
      {isOff && (
        <span id={reasonId} className="muted">
          {whyNot}
        </span>
      )}
      {opened !== null && (
        <ActDialog
          {...one}
          isBlocked={isOff || one.isBlocked === true}
          onClose={() => {
            setOpened(null);
          }}
        >
          {one.children}
          {isOff && <p role="status">{whyNot}</p>}
        </ActDialog>
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
