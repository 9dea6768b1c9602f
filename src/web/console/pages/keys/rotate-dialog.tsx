import { vodbox } from "#web/console/api.ts";
import { Dialog } from "#web/console/components/dialog.tsx";
import { Form, Select } from "#web/console/components/form.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { ApiKey } from "#web/console/types.ts";
import { texts } from "./texts.ts";

const HOURS = [24, 168, 1, 0] as const;

/** Makes a new key in the place of another one. `onRotated` gets its token. */
export function RotateDialog({
  apiKey,
  onRotated,
  onClose,
}: {
  apiKey: ApiKey;
  onRotated(token: string | null): void;
  onClose(): void;
}) {
  const t = useTexts(texts);
  const rotate = async ({ hours = "" }: Record<string, string>) => {
    const { token } = await vodbox.rotateApiKey({ id: apiKey.id, body: { grace_hours: Number(hours) } });
    onRotated(token ?? null);
  };
  return (
    <Dialog title={`${t("rotateKey")}: ${apiKey.name} …${apiKey.last_four}`} onClose={onClose}>
      <p>{t("rotateHint")}</p>
      <Form submit={t("rotate")} onSubmit={rotate}>
        <Select
          label={t("oldKey")}
          name="hours"
          options={HOURS.map((hours): [string, string] => [String(hours), t(`hours_${hours}`)])}
        />
      </Form>
    </Dialog>
  );
}
