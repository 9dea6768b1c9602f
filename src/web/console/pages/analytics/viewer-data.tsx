import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form, Select } from "#web/console/components/form.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { saveFile } from "#web/console/save-file.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

type Props = {
  /** That of the operator's choice; null for a tenant's own. */
  tenant: number | null;
  /** Shows an error in the page, which is still there when the dialog is closed. */
  attempt(work: () => Promise<unknown>): Promise<unknown>;
  onClose(): void;
};

/** Exports or erases what is stored of one viewer. */
export function ViewerData({ tenant, attempt, onClose }: Props) {
  const t = useTexts(texts);
  const toast = useToast();
  const [erased, setErased] = useState<string | null>(null);
  const scope = tenant === null ? {} : { tenant_id: tenant };
  if (erased !== null)
    return (
      <ConfirmDialog
        text={t("eraseQuestion", { viewer: erased })}
        onConfirm={async () => {
          onClose();
          await attempt(async () => {
            const { session_count } = await vodbox.eraseViewer({ viewer_id: erased, ...scope });
            toast(t("viewerErased", { count: session_count }));
          });
        }}
        onClose={onClose}
      />
    );
  return (
    <Dialog title={t("viewerData")} onClose={onClose}>
      <p class="fine">{t("viewerDataHint")}</p>
      <Form
        submit={t("continue")}
        onSubmit={async ({ viewer_id = "", action }) => {
          if (action === "erase") return setErased(viewer_id);
          const data = await vodbox.exportViewer({ viewer_id, ...scope });
          saveFile("viewer.json", "application/json", JSON.stringify(data, null, 2));
          onClose();
        }}
      >
        <Field label={t("viewerId")} name="viewer_id" hint={t("viewerIdHint")} required autocomplete="off" />
        <Select
          label={t("action")}
          name="action"
          options={[
            ["export", t("exportViewer")],
            ["erase", t("eraseViewer")],
          ]}
        />
      </Form>
    </Dialog>
  );
}
