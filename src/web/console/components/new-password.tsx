import { useTexts } from "../texts/texts.tsx";
import { Field } from "./form.tsx";

/** A password that is being chosen, with what the API requires of it. */
export function NewPassword({ label, name = "password" }: { label?: string; name?: string }) {
  const t = useTexts();
  return (
    <Field
      label={label ?? t("password")}
      name={name}
      type="password"
      required
      minLength={8}
      hint={t("passwordHint")}
      autocomplete="new-password"
    />
  );
}
