import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { CodeField } from "#web/console/components/code-field.tsx";
import { Form } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { ShownOnce } from "#web/console/components/shown-once.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { NewTotp } from "#web/console/types.ts";
import { texts } from "./texts.ts";

type Props = { isOn: boolean; onChange(): void };

/** Codes of an authenticator app, in addition to the password. */
export function SecondFactor({ isOn, onChange }: Props) {
  const t = useTexts(texts);
  const { failure, attempt } = useAttempt();
  const [setup, setSetup] = useState<NewTotp | null>(null);
  const [recovery, setRecovery] = useState<string[] | null>(null);
  return (
    <section aria-labelledby="second-factor">
      <h2 id="second-factor">{t("secondFactor")}</h2>
      <p class="fine">{t(isOn ? "factorOn" : "factorOff")}</p>
      {recovery && <ShownOnce text={t("recoveryHint")} secret={recovery.join(" ")} />}
      <ErrorNotice error={failure} />
      {isOn && (
        <Form
          submit={t("switchOff")}
          onSubmit={async ({ code = "" }) => {
            await vodbox.deleteMyTotp({ body: { code } });
            setRecovery(null);
            onChange();
          }}
        >
          <PlainCode />
        </Form>
      )}
      {!isOn && !setup && (
        <button type="button" onClick={() => attempt(async () => setSetup(await vodbox.createMyTotp()))}>
          {t("setUpFactor")}
        </button>
      )}
      {!isOn && setup && (
        <>
          <p>{t("scan")}</p>
          <img
            class="qr"
            src={`data:image/svg+xml,${encodeURIComponent(setup.qr_svg)}`}
            alt={t("qrCode")}
            width={200}
            height={200}
          />
          <p>
            {t("secret")} <code>{setup.secret}</code>
          </p>
          <Form
            submit={t("confirm")}
            onSubmit={async ({ code = "" }) => {
              setRecovery((await vodbox.confirmMyTotp({ body: { code } })).recovery_codes);
              setSetup(null);
              onChange();
            }}
          >
            <CodeField name="code" />
          </Form>
        </>
      )}
    </section>
  );
}

/** Does not take the focus of the page. */
function PlainCode() {
  const t = useTexts();
  return (
    <div class="field">
      <label for="factor-code">{t("code")}</label>
      <input id="factor-code" name="code" required autocomplete="one-time-code" />
    </div>
  );
}
