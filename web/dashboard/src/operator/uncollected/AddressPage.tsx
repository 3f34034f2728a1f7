import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { useChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { usePathPart } from "../../ui/address";
import { Amount, Fiat } from "../../ui/Amount";
import { Empty } from "../../ui/Feedback";
import { numbers } from "../../ui/format";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { Said } from "../../ui/Said";
import { Chip, type Tone } from "../../ui/Status";
import { When } from "../../ui/When";
import { useWords } from "../api";
import { MerchantLink } from "../merchants/MerchantLink";
import { usePermitted } from "../queries";

import { CollectButton } from "./CollectButton";
import { addressQuery, type AtAddress } from "./queries";
import { WithdrawButton } from "./WithdrawButton";

const POLL_MS = 10_000;
const TONES = {
  confirming: "work",
  uncollected: "wait",
  collecting: "work",
} as const satisfies Record<AtAddress["state"], Tone>;

/** All that is at one address and in no main wallet yet, and what each part of it waits for. */
export function AddressPage() {
  const { t } = useWords();
  const address = usePathPart("address");
  const query = useQuery({ ...addressQuery(address), refetchInterval: POLL_MS });
  return (
    <Page title={t("uncollected.one")} lead={<Address value={address} whole />}>
      <QueryView query={query} lines={6}>
        {(deposits) =>
          deposits.length === 0 ? (
            <Section>
              <Empty title={t("uncollected.nothingHere")}>
                <p>{t("uncollected.nothingHereWords")}</p>
              </Empty>
            </Section>
          ) : (
            deposits.map((one) => (
              <Part key={`${one.chain} ${one.contractAddress ?? one.token} ${one.intentId ?? one.state}`} one={one} />
            ))
          )
        }
      </QueryView>
    </Page>
  );
}

/** Deposits of one token that wait for the same. */
function Part({ one }: { readonly one: AtAddress }) {
  const { t, i18n } = useWords();
  const chainName = useChainName();
  const maySeeQueue = usePermitted("outbound.read");
  const maySeeTokens = usePermitted("chains.read");
  const number = numbers(i18n.language);
  return (
    <Section
      title={`${one.token} · ${chainName(one.chain)}`}
      actions={
        one.uncollectedId !== null && (
          <>
            {one.askedAt !== null && <WithdrawButton uncollectedId={one.uncollectedId} />}
            <CollectButton uncollectedId={one.uncollectedId} one={one} />
          </>
        )
      }
    >
      <div className="stack">
        <p className="row">
          <Chip tone={TONES[one.state]}>{t(`uncollected.states.${one.state}`)}</Chip>
          {one.askedAt !== null && <Chip tone="work">{t("uncollected.asked")}</Chip>}
          <span>
            <Said of="waits" code={one.code} words={one.text} withOwn />
          </span>
          {maySeeTokens && one.code === "token_not_sendable" && <Link to="/tokens">{t("nav.tokens")}</Link>}
        </p>
        <Facts
          facts={[
            [t("record.amount"), <Amount key="amount" value={one.amount} token={one.token} />],
            [
              t("common:overview.worth"),
              one.valueUsd === null ? null : <Fiat key="worth" value={one.valueUsd} currency="usd" />,
            ],
            [t("uncollected.fee"), one.feeUsd === null ? null : <Fiat key="fee" value={one.feeUsd} currency="usd" />],
            [t("nav.deposits"), number.format(one.deposits)],
            [t("common:mode.title"), one.mode === "sandbox" ? t("common:mode.sandbox") : null],
            [t("record.whose"), t(`uncollected.purposes.${one.purpose}`)],
            [t("record.merchant"), <MerchantLink key="merchant" of={one} />],
            [
              t("nav.queue"),
              one.intentId === null || !maySeeQueue ? null : (
                <Link key="intent" to={`/queue/${one.intentId}`}>
                  {one.intentId}
                </Link>
              ),
            ],
            [t("uncollected.askedAt"), one.askedAt === null ? null : <When key="asked" at={one.askedAt} />],
            [
              t("uncollected.wishWaits"),
              one.wishWaitsFor === null ? null : (
                <span key="wish">
                  <Said of="waits" code={one.wishWaitsFor.code} words={one.wishWaitsFor.text} withOwn />
                  {one.wishWaitsFor.since !== null && (
                    <>
                      {" "}
                      · <When at={one.wishWaitsFor.since} />
                    </>
                  )}
                </span>
              ),
            ],
            [
              t("uncollected.lastRefusal"),
              one.refusal === null || one.refusedAt === null ? null : (
                <span key="refusal">
                  {t(`uncollected.reasons.${one.refusal}`)} · <When at={one.refusedAt} />
                </span>
              ),
            ],
            [
              t("tokens.contract"),
              one.contractAddress === null ? null : <Address key="contract" value={one.contractAddress} />,
            ],
          ]}
        />
      </div>
    </Section>
  );
}
