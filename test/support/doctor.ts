import type { TestApp } from "./app.ts";

export type Finding = { check: string; ok: boolean; detail: string; fixed: number; warning?: true };
const PATH = "/api/v1/admin/doctor/checkup";
const PATIENCE_MS = 120_000;

/** Runs a whole check-up through the API. */
export async function checkup(
  app: Pick<TestApp, "call" | "admin">,
  body: { fix?: boolean; force?: boolean } = {},
): Promise<{ ok: boolean; status: string; findings: Finding[]; of(check: string): Finding }> {
  const { admin } = app;
  const begun = await app.call("POST", PATH, { admin, body });
  if (begun.status !== 202) throw new Error(begun.text);
  for (const deadline = Date.now() + PATIENCE_MS; Date.now() < deadline; ) {
    const { body: state } = await app.call("GET", PATH, { admin });
    if (state.status !== "running") {
      const of = (check: string) =>
        state.findings.find((finding: Finding) => finding.check === check) ?? fail(check, state.findings);
      return { ...state, of };
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("The check-up did not come to its end.");
}

const fail = (check: string, findings: Finding[]): never => {
  throw new Error(`There is no finding ${check}: ${JSON.stringify(findings)}`);
};
