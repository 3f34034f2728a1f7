import { Modal } from "@mantine/core";
import { useEffect, useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { useAbove } from "./above";
import { placesOf, useFocusAfterwards } from "./focus";

/** Above the dialog that asks for a code. */
const ABOVE_ALL = 500;

function stay(): void {
  // Nobody sees what is below before they have signed in.
}

/** Lies over the whole page, and over its dialogs, while somebody signs in again. */
export function SignInCover({ children }: { readonly children: ReactNode }) {
  const { t } = useTranslation();
  const [title] = useState(() => document.title);
  // A button whose act has found that the session is over has the focus no more, but its dialog is there.
  const [before] = useState(() => [
    ...placesOf(document.activeElement),
    ...[...document.querySelectorAll<HTMLElement>("[role=dialog]")].reverse(),
  ]);
  useFocusAfterwards(before);
  useAbove();
  useEffect(
    () => () => {
      document.title = title;
    },
    [title],
  );
  return (
    <Modal.Root
      opened
      onClose={stay}
      lockScroll={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      fullScreen
      padding={0}
      zIndex={ABOVE_ALL}
      transitionProps={{ duration: 0 }}
    >
      <Modal.Content radius={0} aria-label={t("signIn.title")}>
        <Modal.Body>{children}</Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}
