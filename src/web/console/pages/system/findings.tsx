import { Badge } from "#web/console/components/badge.tsx";
import { Table } from "#web/console/components/table.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Checkup } from "#web/console/types.ts";
import { texts } from "./texts.ts";

export type Finding = Checkup["findings"][number];

export function Findings({ findings }: { findings: Finding[] }) {
  const t = useTexts(texts);
  return (
    <Table
      items={findings.map((finding, id) => ({ id, ...finding }))}
      columns={[
        { title: t("status"), cell: (finding) => <FindingState finding={finding} /> },
        { title: t("check"), cell: ({ check }) => check },
        {
          title: t("finding"),
          cell: ({ detail, fixed }) => (fixed > 0 ? `${detail} (${t("fixed", { count: fixed })})` : detail),
        },
      ]}
    />
  );
}

function FindingState({ finding: { ok, warning } }: { finding: Finding }) {
  const t = useTexts(texts);
  if (!ok) return <Badge state="errored" text={t("fault")} />;
  return warning ? <Badge state="processing" text={t("attention")} /> : <Badge state="ready" text={t("ok")} />;
}
