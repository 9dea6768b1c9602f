import { type Column, line, printJson, printList } from "../print.ts";
import type { Ask } from "./ask.ts";

type Finding = { check: string; ok: boolean; detail: string };

const COLUMNS: Column<Finding>[] = [
  ["", (finding) => (finding.ok ? "ok" : "FAULT")],
  ["CHECK", (finding) => finding.check],
  ["FOUND", (finding) => finding.detail],
];

/** Exits with 1 on a fault. */
export async function check({ admin, json }: Ask): Promise<void> {
  const found = await admin.call<{ ok: boolean; kind: string; findings: Finding[] }>(
    "POST",
    "/api/v1/admin/storage/check",
  );
  if (json) printJson(found);
  else {
    printList(found.findings, COLUMNS, false);
    line(found.ok ? "\nAll is well." : "\nThere are faults.");
  }
  if (!found.ok) process.exitCode = 1;
}
