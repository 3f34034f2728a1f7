import { Button } from "@mantine/core";
import { useState, type ReactNode } from "react";

import { Confirm } from "../ui/Confirm";
import { Text } from "../ui/Text";

import { useWords } from "./api";

interface ActButtonProps {
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
  /** Whether the audit log wants a reason. */
  readonly wantsReason?: boolean;
  readonly isSmall?: boolean;
  /** Lets the dialog's own fields begin with what is so now. */
  readonly onOpen?: () => void;
  readonly onConfirm: (reason: string) => Promise<unknown>;
}

/** A button for something that an operator does, which says first what will happen. */
export function ActButton(props: ActButtonProps) {
  const {
    act,
    title,
    children,
    isDangerous = false,
    isBlocked = false,
    typed,
    wantsReason = false,
    isSmall = false,
  } = props;
  const { t } = useWords();
  const [isOpen, setOpen] = useState(false);
  const [reason, setReason] = useState("");
  return (
    <>
      <Button
        variant="default"
        size={isSmall ? "compact-sm" : "sm"}
        onClick={() => {
          setReason("");
          props.onOpen?.();
          setOpen(true);
        }}
      >
        {act}
      </Button>
      {isOpen && (
        <Confirm
          title={title}
          act={act}
          isDangerous={isDangerous}
          isBlocked={isBlocked}
          {...(typed === undefined ? {} : { typed })}
          onConfirm={() => props.onConfirm(reason.trim())}
          onClose={() => {
            setOpen(false);
          }}
        >
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
      )}
    </>
  );
}
