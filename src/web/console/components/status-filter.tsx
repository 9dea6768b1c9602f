import { useTexts } from "../texts/texts.tsx";

type Props<Status extends string> = {
  value: Status | "";
  /** Each status with its text. */
  options: readonly (readonly [Status, string])[];
  onChange(value: Status | ""): void;
};

/** Restricts a list to one status; an empty value is all. */
export function StatusFilter<Status extends string>({ value, options, onChange }: Props<Status>) {
  const t = useTexts();
  return (
    <label>
      <span class="unseen">{t("status")}</span>
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value as Status | "")}>
        <option value="">{t("all")}</option>
        {options.map(([status, text]) => (
          <option key={status} value={status}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
