/** The pages of each kind: its list, and one of it. */
import { deposits, payments, payouts, refunds, withdrawals } from "./kinds";
import { accounts, exchanges, trackers } from "./moreKinds";
import { RecordList } from "./RecordList";
import { RecordPage } from "./RecordPage";

export const Payments = () => <RecordList kind={payments} />;
export const Payment = () => <RecordPage kind={payments} />;
export const Deposits = () => <RecordList kind={deposits} />;
export const Deposit = () => <RecordPage kind={deposits} />;
export const Payouts = () => <RecordList kind={payouts} />;
export const Payout = () => <RecordPage kind={payouts} />;
export const Refunds = () => <RecordList kind={refunds} />;
export const Refund = () => <RecordPage kind={refunds} />;
export const Withdrawals = () => <RecordList kind={withdrawals} />;
export const Withdrawal = () => <RecordPage kind={withdrawals} />;
export const Exchanges = () => <RecordList kind={exchanges} />;
export const Exchange = () => <RecordPage kind={exchanges} />;
export const Accounts = () => <RecordList kind={accounts} />;
export const Account = () => <RecordPage kind={accounts} />;
export const Trackers = () => <RecordList kind={trackers} />;
export const Tracker = () => <RecordPage kind={trackers} />;
