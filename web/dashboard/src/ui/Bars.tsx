import styles from "./Bars.module.css";

export interface Bar {
  readonly key: string;
  /** What it is of, such as a day. */
  readonly label: string;
  /** How long it is: for drawing alone, the text says what it is. */
  readonly size: number;
  readonly text: string;
}

interface BarsProps {
  readonly label: string;
  readonly bars: readonly Bar[];
}

const HEIGHT = 100;
const WIDTH = 10;
const GAP = 2;
const LEAST = 1;

/**
 * A series, part beside part. Each bar says what it is of where the pointer is, and a table says so to who sees none.
 *
 * Time runs from left to right in every language, as it does in the charts of exchanges and price sources.
 */
export function Bars({ label, bars }: BarsProps) {
  const most = Math.max(...bars.map((one) => one.size), 0);
  const heights = bars.map(({ size }) => (size <= 0 || most <= 0 ? 0 : Math.max(LEAST, (HEIGHT * size) / most)));
  return (
    <figure>
      <svg
        className={styles.bars}
        viewBox={`0 0 ${String(bars.length * WIDTH)} ${String(HEIGHT)}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {bars.map((one, number) => (
          <rect
            key={one.key}
            className={styles.bar}
            x={number * WIDTH + GAP / 2}
            y={HEIGHT - (heights[number] ?? 0)}
            width={WIDTH - GAP}
            height={heights[number] ?? 0}
          >
            <title>{`${one.label}: ${one.text}`}</title>
          </rect>
        ))}
      </svg>
      {/* A table itself is never narrower than its words, also where it is not seen. */}
      <div className="unseen">
        <table>
          <caption>{label}</caption>
          <tbody>
            {bars.map((one) => (
              <tr key={one.key}>
                <th scope="row">{one.label}</th>
                <td>{one.text}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <figcaption dir="ltr" className={styles.ends}>
        <bdi>{bars[0]?.label}</bdi>
        <bdi>{bars.at(-1)?.label}</bdi>
      </figcaption>
    </figure>
  );
}
