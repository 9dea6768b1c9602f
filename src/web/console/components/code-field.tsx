import { useEffect, useId, useRef } from "preact/hooks";
import { useTexts } from "../texts/texts.tsx";

/** A code of the second factor; it takes the focus when it appears. */
export function CodeField({ name = "totp" }: { name?: string }) {
  const t = useTexts();
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  return (
    <div class="field">
      <label for={id}>{t("code")}</label>
      <input id={id} ref={input} name={name} required autocomplete="one-time-code" aria-describedby={`${id}-hint`} />
      <small id={`${id}-hint`} class="fine">
        {t("codeHint")}
      </small>
    </div>
  );
}
