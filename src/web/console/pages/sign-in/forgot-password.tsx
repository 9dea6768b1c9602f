import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

/** Asks for the address to which a link is mailed. */
export function ForgotPassword() {
  const t = useTexts(texts);
  const [isOpen, setOpen] = useState(false);
  const [isSent, setSent] = useState(false);
  const open = () => {
    setSent(false);
    setOpen(true);
  };
  return (
    <>
      <button type="button" class="quiet" onClick={open}>
        {t("forgotPassword")}
      </button>
      {isOpen && (
        <Dialog title={t("resetPassword")} onClose={() => setOpen(false)}>
          {isSent ? (
            <>
              <p role="status">{t("resetSent")}</p>
              <button type="button" onClick={() => setOpen(false)}>
                {t("close")}
              </button>
            </>
          ) : (
            <Form
              submit={t("sendLink")}
              onSubmit={async ({ email = "" }) => {
                await vodbox.requestPasswordReset({ body: { email } });
                setSent(true);
              }}
            >
              <Field label={t("email")} name="email" type="email" required autocomplete="username" />
            </Form>
          )}
        </Dialog>
      )}
    </>
  );
}
