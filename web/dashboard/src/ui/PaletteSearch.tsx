import { Modal, TextInput, UnstyledButton } from "@mantine/core";
import { useEffect, useState, type KeyboardEvent } from "react";
import { useTranslation } from "react-i18next";

import type { Command, SearchProps } from "./Palette";
import styles from "./Palette.module.css";

const SHOWN_MAX = 12;

/** Return the commands that contain every word that was typed, those first that begin with the first of them. */
export function matching(commands: readonly Command[], typed: string): readonly Command[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const found = commands.filter((one) => {
    const text = `${one.label} ${one.keywords ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const first = words[0];
  if (first === undefined) return found.slice(0, SHOWN_MAX);
  const rank = (one: Command) => (one.label.toLowerCase().startsWith(first) ? 0 : 1);
  return found.toSorted((a, b) => rank(a) - rank(b)).slice(0, SHOWN_MAX);
}

/** What is found by what is typed, and the way to it. */
export function Search({ commands, finder, typed, onTyped, isEntered, onEntered, onClose }: SearchProps) {
  const { t } = useTranslation();
  const [at, setAt] = useState(0);
  const shown = [...matching(commands, typed), ...(finder?.found ?? [])];
  const hasFailed = finder?.hasFailed === true;
  const none = finder?.isLooking === true ? "ui.loading" : hasFailed ? "palette.failed" : "palette.none";

  function run(command: Command | undefined): void {
    if (command === undefined) return;
    onClose();
    command.run();
  }

  useEffect(() => {
    if (!isEntered) return;
    onEntered(false);
    run(shown[0]);
  });

  function onKey(event: KeyboardEvent): void {
    if (event.nativeEvent.isComposing) return; // its keys choose what is typed
    if (event.key === "ArrowDown") setAt((at + 1) % Math.max(shown.length, 1));
    else if (event.key === "ArrowUp") setAt((at - 1 + shown.length) % Math.max(shown.length, 1));
    else if (event.key === "Enter") run(shown[at]);
    else return;
    event.preventDefault();
  }

  return (
    <Modal.Root opened onClose={onClose} lockScroll={false} yOffset="12vh" centered={false}>
      <Modal.Overlay />
      <Modal.Content aria-label={t("palette.open")}>
        <Modal.Body p={0}>
          <TextInput
            // At once, and not a moment later as the dialog's own focus: who types on after Ctrl K loses no letter.
            autoFocus
            data-autofocus
            size="lg"
            variant="unstyled"
            className={styles.input}
            placeholder={t("palette.placeholder")}
            aria-label={t("palette.placeholder")}
            role="combobox"
            aria-expanded
            aria-controls="palette-found"
            aria-activedescendant={shown[at] === undefined ? undefined : `palette-${shown[at].id}`}
            value={typed}
            onFocus={({ currentTarget }) => {
              // What was typed before this was there is typed on.
              currentTarget.setSelectionRange(typed.length, typed.length);
            }}
            onChange={(event) => {
              onTyped(event.currentTarget.value);
              setAt(0);
            }}
            onKeyDown={onKey}
          />
          <div id="palette-found" role="listbox" aria-label={t("palette.found")} className={styles.found}>
            {shown.map((one, index) => (
              <UnstyledButton
                key={one.id}
                id={`palette-${one.id}`}
                role="option"
                tabIndex={-1}
                aria-selected={index === at}
                className={styles.option}
                onMouseMove={() => {
                  setAt(index);
                }}
                onClick={() => {
                  run(one);
                }}
              >
                {one.label}
              </UnstyledButton>
            ))}
            {(shown.length === 0 || hasFailed) && <p className={styles.none}>{t(none)}</p>}
          </div>
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}
