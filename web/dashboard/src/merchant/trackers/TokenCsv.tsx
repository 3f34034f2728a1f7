import { SaveCsv } from "../../ui/CsvButton";

interface TokenCsvProps {
  /** Which of a tracker's lists. */
  readonly list: "address" | "transaction";
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly name: string;
  readonly token: string;
}

/** Saves what is in a tracker as a file, with the token that manages it. */
export function TokenCsv({ list, token, ...file }: TokenCsvProps) {
  return (
    <SaveCsv
      {...file}
      path={`/api/webhook/${list}/list`}
      send={(request) => {
        request.headers.set("X-Auth-Token", token);
        return fetch(request);
      }}
    />
  );
}
