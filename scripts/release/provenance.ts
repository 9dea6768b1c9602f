import { execFileSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nodeVersion, own, paths } from "../build/paths.ts";
import { sha256 } from "./checksums.ts";

export const provenanceName = `vodbox-${own.version}.provenance.json`;

/** The options of `npm run release` that change its files. */
export type ReleaseParameters = { architectures: readonly string[]; stage: string; base_url: string };

/**
 * Writes what the files in `folder` were built from: an in-toto statement of version 1 with a predicate of SLSA 1.0
 * (https://slsa.dev/spec/v1.0/provenance). Its subjects are all files. It has no time, so that the same build writes the same.
 */
export async function writeProvenance(folder: string, parameters: ReleaseParameters): Promise<void> {
  const subject: object[] = [];
  for (const name of readdirSync(folder).sort())
    subject.push({ name, digest: { sha256: await sha256(join(folder, name)) } });
  const statement = {
    _type: "https://in-toto.io/Statement/v1",
    subject,
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "urn:vodbox:release:1",
        externalParameters: parameters,
        internalParameters: { node: nodeVersion },
        resolvedDependencies: [
          ...commit(),
          {
            name: "package-lock.json",
            digest: { sha256: await sha256(join(paths.root, "package-lock.json")) },
          },
        ],
      },
      runDetails: builder(process.env),
    },
  };
  writeFileSync(join(folder, provenanceName), `${JSON.stringify(statement, null, 2)}\n`);
}

/** The commit of the checkout, and whether files differ from it; nothing outside of a checkout. */
function commit(): object[] {
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: paths.root, stdio: ["ignore", "pipe", "ignore"] })
      .toString()
      .trim();
  try {
    const modified = git("status", "--porcelain", "--untracked-files=no") !== "";
    return [{ name: "vodbox", digest: { gitCommit: git("rev-parse", "HEAD") }, annotations: { modified } }];
  } catch {
    return [];
  }
}

/** A workflow of GitHub has a URL for itself and its run; any other machine has none that others could look up. */
function builder(env: NodeJS.ProcessEnv): object {
  const { GITHUB_SERVER_URL, GITHUB_WORKFLOW_REF, GITHUB_REPOSITORY, GITHUB_RUN_ID } = env;
  if (!GITHUB_SERVER_URL || !GITHUB_WORKFLOW_REF) return { builder: { id: "urn:vodbox:builder:local" } };
  return {
    builder: { id: `${GITHUB_SERVER_URL}/${GITHUB_WORKFLOW_REF}` },
    metadata: { invocationId: `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}/actions/runs/${GITHUB_RUN_ID}` },
  };
}
