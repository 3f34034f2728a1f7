import { useTranslation } from "react-i18next";
import { encode } from "uqr";

interface QrCodeProps {
  readonly text: string;
  readonly className: string;
}

/** Quiet modules around a code, without which cameras do not find it. */
const BORDER = 4;

/** A text as a QR code: one path, so that nothing has to be drawn by a script or loaded. */
export default function QrCode({ text, className }: QrCodeProps) {
  const { t } = useTranslation();
  const { data, size } = encode(text, { border: BORDER });
  const path = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
  return (
    <svg
      role="img"
      aria-label={t("qr.of", { text })}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      className={className}
    >
      <path fill="#000" d={path} />
    </svg>
  );
}
