import { Address } from "../../ui/Address";
import { Empty } from "../../ui/Feedback";
import { type Column } from "../../ui/List";
import { useMeaning } from "../../ui/Meaning";
import { None } from "../../ui/None";
import { Plain } from "../../ui/Plain";
import { When } from "../../ui/When";
import { useWords } from "../api";

interface Transaction {
  readonly createdAt: string;
  readonly state: string;
  readonly role: string;
  readonly nonce: number | null;
  readonly txHash: string;
}

interface SignedProps<Row> {
  readonly transactions: readonly Row[];
  readonly hasFailed: boolean;
  /** What else is said of each. */
  readonly columns: readonly Column<Row>[];
}

/** The transactions that were signed for an intent. */
export function Signed<Row extends Transaction>({ transactions, hasFailed, columns }: SignedProps<Row>) {
  const { t } = useWords();
  const meaning = useMeaning();
  if (transactions.length === 0) return <Empty title={t(hasFailed ? "record.neverSigned" : "record.noTransactions")} />;
  return (
    <Plain
      label={t("record.transactions")}
      rows={transactions}
      rowKey={(one) => one.txHash}
      columns={[
        { id: "made", title: t("common:payments.created"), cell: (one) => <When at={one.createdAt} /> },
        {
          id: "state",
          title: t("record.state"),
          cell: (one) => `${meaning("transaction", one.state)} · ${meaning("role", one.role)}`,
        },
        {
          id: "nonce",
          title: t("record.nonce"),
          cell: (one) => (one.nonce === null ? <None /> : <span className="number">{one.nonce}</span>),
        },
        ...columns,
        { id: "tx", title: t("record.tx"), cell: (one) => <Address value={one.txHash} /> },
      ]}
    />
  );
}
