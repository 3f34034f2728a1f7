import { Kbd, UnstyledButton } from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";

import { useIsBelow } from "./above";
import { onDemand } from "./onDemand";
import styles from "./Palette.module.css";

export interface Command {
  readonly id: string;
  readonly label: string;
  /** Other words by which it is found. */
  readonly keywords?: string;
  readonly run: () => void;
}

/** What is looked for elsewhere, by what was typed: records, which no list of names has. */
export interface Finder {
  readonly onTyped: (typed: string) => void;
  readonly found: readonly Command[];
  /** What was found may be of what was typed before. */
  readonly isLooking: boolean;
  /** What was typed could not be looked for: that nothing was found says nothing. */
  readonly hasFailed: boolean;
}

interface PaletteProps {
  readonly commands: readonly Command[];
  readonly finder?: Finder | undefined;
}

export interface SearchProps extends PaletteProps {
  readonly typed: string;
  readonly onTyped: (typed: string) => void;
  /** Whether Enter was pressed before anything could be found. */
  readonly isEntered: boolean;
  readonly onEntered: (isEntered: boolean) => void;
  readonly onClose: () => void;
}

const Search = onDemand(async () => (await import("./PaletteSearch")).Search, { meanwhile: Typing });

/** Everything that can be reached, by its name: Ctrl K or ⌘ K from anywhere. */
export function Palette({ commands, finder }: PaletteProps) {
  const { t } = useTranslation();
  const [isOpen, dialog] = useDisclosure();
  const isBelow = useIsBelow();
  const [typed, setTyped] = useState("");
  const [isEntered, setEntered] = useState(false);
  const focused = useRef<Element>(null);

  function type(text: string): void {
    setTyped(text);
    setEntered(false); // it was for what was typed before
    finder?.onTyped(text);
  }

  function open(): void {
    if (isBelow) return; // nobody would see where the keys go
    if (!isOpen) focused.current = document.activeElement;
    dialog.open();
  }

  function close(): void {
    dialog.close();
    type(""); // what was typed is gone with the dialog
    if (focused.current instanceof HTMLElement) focused.current.focus();
  }

  useHotkeys([["mod+K", open]], []);
  return (
    <>
      <UnstyledButton className={styles.opener} onClick={open} aria-keyshortcuts="Control+K Meta+K">
        <span>{t("palette.open")}</span>
        <Kbd className={styles.kbd} aria-hidden>
          {"Ctrl K"}
        </Kbd>
      </UnstyledButton>
      {isOpen && (
        <Search
          commands={commands}
          finder={finder}
          typed={typed}
          onTyped={type}
          isEntered={isEntered}
          onEntered={setEntered}
          onClose={close}
        />
      )}
    </>
  );
}

/** Takes what is typed until there is something that looks for it: who types on after Ctrl K loses no key. */
function Typing({ typed, onTyped, onEntered, onClose }: SearchProps) {
  const { t } = useTranslation();
  return (
    <>
      <div role="presentation" className={styles.behind} onClick={onClose} />
      <input
        autoFocus
        className={styles.typing}
        placeholder={t("palette.placeholder")}
        aria-label={t("palette.placeholder")}
        value={typed}
        onChange={(event) => {
          onTyped(event.currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === "Escape") onClose();
          else if (event.key === "Enter") onEntered(true);
        }}
      />
    </>
  );
}
