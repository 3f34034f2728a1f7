import { Button, Popover } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useTranslation } from "react-i18next";

import { Address } from "./Address";
import styles from "./Scannable.module.css";

const QrCode = lazy(() => import("./QrCode"));

/** A whole address, and its QR code for the camera of a phone. */
export function Scannable({ value }: { readonly value: string }) {
  const { t } = useTranslation();
  return (
    <span className="row">
      <Address value={value} whole />
      <Popover withArrow withRoles={false} position="bottom-start" shadow="md">
        <Popover.Target>
          <Button variant="default" size="compact-xs" className={styles.opener}>
            {t("qr.show")}
          </Button>
        </Popover.Target>
        <Popover.Dropdown className={styles.dropdown}>
          <Suspense fallback={<div className={styles.code} />}>
            <QrCode text={value} className={styles.code ?? ""} />
          </Suspense>
        </Popover.Dropdown>
      </Popover>
    </span>
  );
}
