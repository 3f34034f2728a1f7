import { Button } from "@mantine/core";
import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { asApiError, type ApiError } from "../../api/errors";
import { api, unwrap } from "../api";
import { useSearchValues } from "../../ui/address";
import { Confirm } from "../../ui/Confirm";
import { ErrorNote } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { destination, readNext } from "../../ui/next";
import { PasswordText } from "../../ui/PasswordText";
import { QueryView } from "../../ui/QueryView";
import { RecoveryCodes } from "../../ui/RecoveryCodes";
import { Secret } from "../../ui/Secret";
import { Chip } from "../../ui/Status";
import { Text } from "../../ui/Text";
import { useAct } from "../../ui/useAct";
import { usePasswordAndCode } from "../../ui/usePasswordAndCode";
import { meQuery, type Schemas } from "../queries";

const twoFactorQuery = queryOptions({
  queryKey: ["two-factor"],
  queryFn: ({ signal }) => unwrap(api.GET("/api/dashboard/two-factor", { signal })),
});

/** The second factor: turned on with an authenticator, renewed, and turned off. */
export function TwoFactor() {
  const { t } = useTranslation();
  const query = useQuery(twoFactorQuery);
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  const [foundOn, setFoundOn] = useState<ApiError | null>(null);
  return (
    <Section title={t("twoFactor.title")}>
      <div className="stack">
        {foundOn !== null && <ErrorNote error={foundOn} />}
        {codes !== null && <RecoveryCodes codes={codes} />}
        {query.data?.enabled === true && <Back />}
        <QueryView query={query} lines={2}>
          {(status) =>
            status.enabled ? (
              <On
                status={status}
                onCodes={setCodes}
                onChanged={() => {
                  setFoundOn(null);
                }}
              />
            ) : (
              <Off onCodes={setCodes} onFoundOn={setFoundOn} />
            )
          }
        </QueryView>
      </div>
    </Section>
  );
}

/** The way back to the act that wanted a second factor, for whoever came from there. */
function Back() {
  const { t } = useTranslation();
  const { next } = readNext(useSearchValues());
  if (next === undefined) return null;
  return (
    <div className="row">
      <Link {...destination(next)}>{t("twoFactor.back")}</Link>
    </div>
  );
}

interface OnCodes {
  readonly onCodes: (codes: readonly string[] | null) => void;
}

interface OffProps extends OnCodes {
  /** It is on already: the answer that said so was lost, or it was turned on in another page. */
  readonly onFoundOn: (refused: ApiError) => void;
}

function Off({ onCodes, onFoundOn }: OffProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [enrolled, setEnrolled] = useState<Schemas["Enrolled"] | null>(null);
  async function readAnew(): Promise<void> {
    await Promise.all([client.invalidateQueries(twoFactorQuery), client.invalidateQueries(meQuery)]);
  }

  /** What is known to be on is shown so: this form goes, and what it was refused with stays. */
  async function unlessOn(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      const refused = asApiError(error);
      if (refused.code !== "TWO_FACTOR_ON") throw refused;
      onFoundOn(refused);
      await readAnew();
    }
  }

  const enrol = useAct(() =>
    unlessOn(async () => {
      setEnrolled(await unwrap(api.POST("/api/dashboard/two-factor/enrol", { body: { password } })));
    }),
  );
  const confirm = useAct(() =>
    unlessOn(async () => {
      const body = { totpCode: code.trim() };
      onCodes((await unwrap(api.POST("/api/dashboard/two-factor/confirm", { body }))).recoveryCodes);
      void readAnew();
    }),
  );
  if (enrolled === null) {
    return (
      <form className="stack" onSubmit={enrol.submit}>
        <p>{t("twoFactor.off")}</p>
        <PasswordText
          label={t("signIn.password")}
          autoComplete="current-password"
          value={password}
          onText={setPassword}
        />
        {enrol.error !== null && <ErrorNote error={enrol.error} />}
        <div className="row">
          <Button type="submit" loading={enrol.isRunning}>
            {t("twoFactor.turnOn")}
          </Button>
        </div>
      </form>
    );
  }
  return (
    <form className="stack" onSubmit={confirm.submit}>
      <p>{t("twoFactor.scan")}</p>
      <img src={enrolled.qrCode} alt={t("twoFactor.qr")} width="200" height="200" className="qr" />
      <Secret text={enrolled.secret} />
      <Text
        label={t("signIn.code")}
        required
        autoComplete="one-time-code"
        inputMode="numeric"
        value={code}
        onText={setCode}
      />
      {confirm.error !== null && <ErrorNote error={confirm.error} />}
      <div className="row">
        <Button type="submit" loading={confirm.isRunning}>
          {t("twoFactor.confirm")}
        </Button>
        <Button
          variant="default"
          disabled={confirm.isRunning}
          onClick={() => {
            setEnrolled(null);
          }}
        >
          {t("ui.cancel")}
        </Button>
      </div>
    </form>
  );
}

interface OnProps extends OnCodes {
  readonly status: Schemas["StatusView"];
  readonly onChanged: () => void;
}

function On({ status, onCodes, onChanged }: OnProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const { fields, body, clear } = usePasswordAndCode();
  const [asked, setAsked] = useState<"renew" | "turnOff" | null>(null);

  async function renew(): Promise<void> {
    onCodes((await unwrap(api.POST("/api/dashboard/two-factor/recovery-codes", { body }))).recoveryCodes);
    onChanged();
    clear();
    void client.invalidateQueries(twoFactorQuery);
  }

  async function disable(): Promise<void> {
    await unwrap(api.POST("/api/dashboard/two-factor/disable", { body }));
    onCodes(null);
    onChanged();
    void client.invalidateQueries(twoFactorQuery);
    void client.invalidateQueries(meQuery);
  }

  return (
    <>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setAsked("renew");
        }}
      >
        <p className="row">
          <Chip tone="good">{t("twoFactor.on")}</Chip>
          <span>{t("twoFactor.left", { count: status.recoveryCodesLeft })}</span>
        </p>
        {fields}
        <div className="row">
          <Button type="submit" variant="default">
            {t("twoFactor.renew")}
          </Button>
          <Button
            variant="default"
            onClick={(event) => {
              if (event.currentTarget.form?.reportValidity() === true) setAsked("turnOff");
            }}
          >
            {t("twoFactor.turnOff")}
          </Button>
        </div>
      </form>
      {asked !== null && (
        <Confirm
          title={t(`twoFactor.${asked}Title`)}
          act={t(`twoFactor.${asked}`)}
          isDangerous
          onConfirm={asked === "renew" ? renew : disable}
          onClose={() => {
            setAsked(null);
          }}
        >
          <p>{t(`twoFactor.${asked}Words`)}</p>
        </Confirm>
      )}
    </>
  );
}
