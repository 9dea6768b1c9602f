import { useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";
import type { Target } from "./transfers.ts";

type Props = { target: Target; isDisabled: boolean };

/** Asks for the address of a file, which the server fetches; its video's page shows how far that is. */
export function FromUrl({ target: { tenantId, collectionId }, isDisabled }: Props) {
  const t = useTexts(texts);
  const { route } = useLocation();
  const [isOpen, setOpen] = useState(false);
  const fetchIt = async ({ url = "", title = "" }: Record<string, string>) => {
    const upload = await vodbox.uploadFromUrl({
      body: {
        url,
        ...(title !== "" && { title }),
        ...(tenantId !== null && { tenant_id: tenantId }),
        ...(collectionId !== null && { collection_id: collectionId }),
      },
    });
    route(pagePath(`assets/${upload.asset_id}`));
  };
  return (
    <>
      <button type="button" disabled={isDisabled} onClick={() => setOpen(true)}>
        {t("fromUrl")}
      </button>
      {isOpen && (
        <Dialog title={t("fromUrlTitle")} onClose={() => setOpen(false)}>
          <Form submit={t("fetch")} onSubmit={fetchIt}>
            <Field label={t("address")} name="url" type="url" hint={t("addressHint")} required />
            <Field label={t("title")} name="title" />
          </Form>
        </Dialog>
      )}
    </>
  );
}
