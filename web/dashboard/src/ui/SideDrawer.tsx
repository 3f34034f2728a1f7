import { Drawer } from "@mantine/core";
import { useDeferredValue, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

interface SideDrawerProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** The navigation where there is no room for it beside the page. */
export function SideDrawer({ isOpen, onClose, children }: SideDrawerProps) {
  const { t } = useTranslation();
  // It opens once it is there: so it knows where the focus was, and gives it back.
  const isOpened = useDeferredValue(isOpen, false);
  return (
    <Drawer
      opened={isOpened}
      onClose={onClose}
      size={300}
      title={t("shell.menu")}
      closeButtonProps={{ "aria-label": t("ui.close") }}
    >
      {children}
    </Drawer>
  );
}
