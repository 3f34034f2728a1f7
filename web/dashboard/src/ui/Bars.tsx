import styles from "./Bars.module.css";
import { Chart, endOfAxis, heightIn, placeOf } from "./Chart";

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
  /** Says how much a line of the axis stands for. */
  readonly onAxis: (size: number) => string | null;
}

const LEAST = 1;

/** A series, part beside part. Each bar says what it is of where the pointer is, and a table says so to who sees none. */
export function Bars({ label, bars, onAxis }: BarsProps) {
  const end = endOfAxis(Math.max(...bars.map((one) => one.size), 0));
  const heightOf = (size: number) => (size <= 0 ? 0 : Math.max(LEAST, heightIn(size, end)));
  return (
    <figure>
      <Chart
        label={label}
        first={bars[0]?.label}
        last={bars.at(-1)?.label}
        parts={bars.length}
        end={end}
        onAxis={onAxis}
      >
        {bars.map((one, number) => (
          <rect key={one.key} className={styles.bar} {...placeOf(number, heightOf(one.size))}>
            <title>{`${one.label}: ${one.text}`}</title>
          </rect>
        ))}
      </Chart>
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
    </figure>
  );
}
