import { Select } from "#web/console/components/form.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import { PERIODS, type Selection } from "./period.ts";
import { texts } from "./texts.ts";

type Props = { selection: Selection; onChange(changes: Record<string, string | null>): void };

export function Filters({ selection, onChange }: Props) {
  const t = useTexts(texts);
  const { period, firstDay, lastDay, by, canBeHourly } = selection;
  const choose = (next: string) =>
    onChange({
      period: next,
      by: null,
      ...(next === "custom" ? { from: firstDay, to: lastDay } : { from: null, to: null }),
    });
  const day = (label: "from" | "to", value: string) => (
    <label class="field">
      {t(label)}
      <input
        type="date"
        value={value}
        required
        onChange={({ currentTarget }) => currentTarget.value && onChange({ [label]: currentTarget.value })}
      />
    </label>
  );
  return (
    <>
      <Select
        label={t("period")}
        name="period"
        value={period}
        options={PERIODS.map((one) => [one, t(one)])}
        onChange={choose}
      />
      {period === "custom" && (
        <>
          {day("from", firstDay)}
          {day("to", lastDay)}
        </>
      )}
      {canBeHourly && (
        <Select
          label={t("by")}
          name="by"
          value={by}
          options={[
            ["hour", t("hour")],
            ["day", t("day")],
          ]}
          onChange={(next) => onChange({ by: next })}
        />
      )}
    </>
  );
}
