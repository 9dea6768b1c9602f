import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1";
import { Ajv } from "ajv";
import { Deployment, StatefulSet } from "kubernetes-models/apps/v1";
import { Ingress } from "kubernetes-models/networking.k8s.io/v1";
import { Service, ServiceAccount } from "kubernetes-models/v1";
import ts from "typescript-5";
import { describe, expect, test } from "vitest";
import { envName, SETTINGS } from "#platform/config/settings.ts";
import { own, paths } from "#scripts/build/paths.ts";
import { writeChart } from "#scripts/release/chart.ts";
import { CACHE, DATA, USER } from "#scripts/release/image/base.ts";
import { testApp } from "#test/support/app.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { type Manifest, merged, readChart } from "#test/support/helm.ts";
import { run } from "#test/support/process.ts";

const folder = join(paths.root, "deploy/helm/vodbox");
const { chart, values, render, texts } = readChart(folder);

const required = { baseUrl: "https://video.example.com" };
const s3 = { storage: { type: "s3", s3: { endpoint: "https://s3.example.com", bucket: "videos" } } };
const CASES: Record<string, object> = {
  "one server": required,
  "a bucket": { ...required, ...s3, settings: { VODBOX_LOG_LEVEL: 'warn "quoted"' } },
  everything: {
    ...required,
    ...s3,
    trustedProxies: "10.0.0.0/8",
    image: { repository: "registry.example.com/vodbox", tag: "0.2.0-1", pullPolicy: "Always" },
    imagePullSecrets: [{ name: "registry" }],
    settings: { VODBOX_LEASE_SECONDS: "120", OTEL_EXPORTER_OTLP_ENDPOINT: "http://otel:4318" },
    database: { url: "http://sqld:8080" },
    server: {
      replicas: 3,
      podAnnotations: { a: "b" },
      nodeSelector: { disk: "ssd" },
      tolerations: [{ key: "video", operator: "Exists" }],
      affinity: { podAntiAffinity: {} },
      persistence: { storageClass: "fast", size: "100Gi" },
    },
    workers: {
      concurrency: 2,
      env: { OTEL_SERVICE_NAME: "workers" },
      nodeSelector: { gpu: "false" },
      autoscaling: { enabled: true, minReplicas: 0 },
    },
    service: { type: "LoadBalancer", port: 8443, annotations: { a: "b" } },
    ingress: {
      enabled: true,
      className: "nginx",
      host: "video.example.com",
      tlsSecret: "tls",
      annotations: { a: "b" },
    },
    seccompProfile: { type: "Localhost", localhostProfile: "profiles/vodbox.json" },
    serviceAccount: { annotations: { a: "b" } },
  },
  "no workers": {
    ...required,
    workers: { replicas: 0 },
    server: { localWorkers: 1 },
    serviceAccount: { name: "mine" },
  },
};

/** The models of the kinds that the chart has, which validate against the schemas of Kubernetes and KEDA. */
const MODELS = { StatefulSet, Deployment, Service, ServiceAccount, Ingress, ScaledObject };
/** The modules with their types. */
const MODULES: Record<string, string> = {
  StatefulSet: "kubernetes-models/apps/v1",
  Deployment: "kubernetes-models/apps/v1",
  Service: "kubernetes-models/v1",
  ServiceAccount: "kubernetes-models/v1",
  Ingress: "kubernetes-models/networking.k8s.io/v1",
  ScaledObject: "@kubernetes-models/keda/keda.sh/v1alpha1",
};
const KINDS: Record<string, string[]> = {
  "one server": ["Deployment", "Service", "Service", "ServiceAccount", "StatefulSet"],
  "a bucket": ["Deployment", "Service", "Service", "ServiceAccount", "StatefulSet"],
  everything: ["Deployment", "Ingress", "ScaledObject", "Service", "Service", "ServiceAccount", "StatefulSet"],
  "no workers": ["Service", "Service", "StatefulSet"],
};

/** The pods that a chart starts, with what starts them. */
const podsOf = (all: readonly Manifest[]) => all.filter(({ spec }) => spec?.template);
const one = (all: readonly Manifest[], kind: string) => all.find((each) => each.kind === kind) as Manifest;

describe.each(Object.entries(CASES))("the chart with %s", (name, given) => {
  const all = render(given, "my");

  test("has the objects of the schemas of Kubernetes and KEDA", () => {
    expect(all.map(({ kind }) => kind).sort()).toEqual(KINDS[name]);
    for (const object of all) {
      const Model = MODELS[object.kind as keyof typeof MODELS];
      expect(() => new Model(object as never).validate(), object.kind).not.toThrow();
    }
  });

  test("has no field that these do not know", () => {
    const lines = all.map(({ kind, ...object }, index) => {
      const literal = JSON.stringify({ kind, ...object }, null, 1);
      return `import type { I${kind} as T${index} } from "${MODULES[kind]}"; export const o${index}: T${index} = ${literal};`;
    });
    expect(typeErrors(lines.join("\n"))).toEqual([]);
  });

  test("has names and labels that fit together", () => {
    for (const { kind, spec, metadata } of podsOf(all)) {
      expect(spec.template.metadata.labels, kind).toMatchObject(spec.selector.matchLabels);
      const pod = spec.template.spec;
      const volumes = [...(pod.volumes ?? []), ...(spec.volumeClaimTemplates ?? []).map((each: any) => each.metadata)];
      const mounted = pod.containers.flatMap((each: any) => each.volumeMounts.map((mount: any) => mount.name));
      expect(mounted.sort()).toEqual(volumes.map((volume: any) => volume.name).sort());
      expect(metadata.name.length).toBeLessThanOrEqual(63);
    }
    const server = one(all, "StatefulSet");
    const services = all.filter(({ kind }) => kind === "Service");
    for (const { spec } of services) {
      expect(server.spec.template.metadata.labels).toMatchObject(spec.selector);
      const { ports } = server.spec.template.spec.containers[0];
      for (const { targetPort } of spec.ports) expect(ports.map((port: any) => port.name)).toContain(targetPort);
    }
    expect(services.map(({ metadata }) => metadata.name)).toContain(server.spec.serviceName);
    const worker = one(all, "Deployment");
    const scaled = one(all, "ScaledObject");
    if (scaled)
      expect([scaled.spec.scaleTargetRef.name, worker.spec.replicas]).toEqual([worker.metadata.name, undefined]);
    const [service] = services.filter(({ spec }) => spec.clusterIP !== "None") as [Manifest];
    const url = `http://${service.metadata.name}:${service.spec.ports[0].port}`;
    if (worker) expect(worker.spec.template.spec.containers[0].args).toContain(url);
  });

  test("starts pods that may do what the sandbox needs, and nothing else", () => {
    for (const { spec } of podsOf(all)) {
      const pod = spec.template.spec;
      expect(pod).toMatchObject({
        automountServiceAccountToken: false,
        // A service of the name vodbox would otherwise set VODBOX_PORT.
        enableServiceLinks: false,
        securityContext: { runAsNonRoot: true, runAsUser: USER, fsGroup: USER },
      });
      expect(pod.securityContext.seccompProfile.type).toMatch(/^(RuntimeDefault|Localhost)$/);
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(15);
      for (const container of pod.containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
        const places = container.volumeMounts.map((mount: any) => mount.mountPath);
        expect(places).toContain(`/${CACHE}`);
        expect(places.includes(`/${DATA}`)).toBe(container.name === "server");
      }
    }
  });

  test("sets settings that there are, and no secrets", () => {
    const known = Object.keys(SETTINGS).map(envName);
    for (const { spec } of podsOf(all)) {
      const [container] = spec.template.spec.containers;
      const secrets = container.env.filter((each: any) => each.valueFrom);
      const names = container.env.map((each: any) => each.name) as string[];
      expect(names.filter((each) => !known.includes(each) && !each.startsWith("OTEL_"))).toEqual([]);
      expect(new Set(names).size).toBe(names.length);
      const secret = values.existingSecret;
      const key = "VODBOX_WORKER_TOKEN";
      if (container.name === "server")
        expect([secrets, container.envFrom]).toEqual([[], [{ secretRef: { name: secret } }]]);
      else
        expect([secrets, container.envFrom]).toEqual([
          [{ name: key, valueFrom: { secretKeyRef: { name: secret, key } } }],
          undefined,
        ]);
    }
  });

  test("is what its schema of values allows", () => {
    expect(faultsOf(merged(values, given as Record<string, unknown>))).toEqual([]);
  });
});

const schema = JSON.parse(readFileSync(join(folder, "values.schema.json"), "utf8"));
const validate = new Ajv({ allErrors: true, strict: false }).compile(schema);
function faultsOf(all: unknown): string[] {
  return validate(all) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

describe("values that", () => {
  test.each([
    ["have no URL", {}, /baseUrl is required/],
    [
      "have several servers without a database server",
      { ...required, ...s3, server: { replicas: 2 } },
      /database\.url/,
    ],
    [
      "have several servers on their own disks",
      { ...required, database: { url: "http://d" }, server: { replicas: 2 } },
      /s3/,
    ],
    ["have no bucket", { ...required, storage: { type: "s3" } }, /storage\.s3\.bucket/],
    ["have an ingress without a host", { ...required, ingress: { enabled: true } }, /ingress\.host/],
  ])("%s are refused", (_, given, message) => {
    expect(() => render(given)).toThrow(message);
  });

  test.each([
    {},
    { baseUrl: "video.example.com" },
    { ...required, sever: { replicas: 2 } },
    { ...required, server: { replica: 2 } },
    { ...required, server: { replicas: 0 } },
    { ...required, storage: { type: "S3" } },
    // A number of a YAML document may become 1e+06 in a template.
    { ...required, settings: { VODBOX_CHUNK_SECONDS: 1_000_000 } },
    { ...required, settings: { PATH: "/tmp" } },
    { ...required, workers: { scratchSize: "50 GB" } },
    { ...required, workers: { autoscaling: { jobsPerWorker: 0 } } },
  ])("are not in the schema are refused: %j", (given) => {
    expect(faultsOf(merged(values, given))).not.toEqual([]);
  });
});

test("the chart is of this version, and names what the program has", async () => {
  expect([chart.version, chart.appVersion]).toEqual([own.version, own.version]);
  const all = render({ ...required, workers: { concurrency: 3, autoscaling: { enabled: true } } });
  for (const { spec } of podsOf(all)) {
    const { args } = spec.template.spec.containers[0];
    const { code, stdout } = await run([args[0], "--help"]);
    expect(code).toBe(0);
    for (const option of args.filter((arg: string) => arg.startsWith("--"))) expect(stdout).toContain(option);
  }
  const app = await testApp();
  const [server] = one(all, "StatefulSet").spec.template.spec.containers;
  for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"])
    expect([probe, (await app.call("GET", server[probe].httpGet.path)).status]).toEqual([probe, 200]);
  const { query } = one(all, "ScaledObject").spec.triggers[0].metadata;
  const [, metric, states = ""] = /^sum\((\w+)\{state=~"([a-z|]+)"\}\)$/.exec(query) ?? [];
  const { text } = await app.call("GET", "/metrics", { admin: app.admin });
  for (const state of states.split("|")) expect(text).toContain(`${metric}{state="${state}"}`);
  await app.close();
});

test("a release has the chart as one file, always the same", async () => {
  const out = emptyFolder();
  const file = await writeChart(out);
  const first = readFileSync(file);
  execFileSync("tar", ["-xzf", file, "-C", out]);
  expect(readChart(join(out, "vodbox")).texts(required)).toEqual(texts(required));
  expect(readdirSync(join(out, "vodbox")).sort()).toEqual(readdirSync(folder).sort());
  await writeChart(out);
  expect(readFileSync(file).equals(first)).toBe(true);
});

test("names are cut to what Kubernetes allows, and notes name what there is", () => {
  const release = "a-release-with-a-name-of-fifty-three-characters-xxxxx";
  for (const { metadata } of render({ ...required, workers: { autoscaling: { enabled: true } } }, release))
    expect(metadata.name).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
  expect(texts(required)["NOTES.txt"]).toContain("statefulset/vodbox\n");
});

/** What TypeScript says of a module: literals with a field that their type does not have are errors. */
function typeErrors(source: string): string[] {
  const name = join(paths.root, "manifests-of-the-chart.ts");
  const options: ts.CompilerOptions = {
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    types: [],
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists, readFile } = host;
  host.getSourceFile = (file, ...rest) =>
    file === name ? ts.createSourceFile(file, source, ts.ScriptTarget.ES2022) : getSourceFile(file, ...rest);
  host.fileExists = (file) => file === name || fileExists(file);
  host.readFile = (file) => (file === name ? source : readFile(file));
  return ts
    .getPreEmitDiagnostics(ts.createProgram([name], options, host))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " ").slice(0, 300));
}

test("a field that there is not, or a wrong type, would be found", () => {
  const [object] = render(required).filter(({ kind }) => kind === "Deployment") as [Manifest];
  const broken = structuredClone(object);
  broken.spec.template.spec.containers[0].imagePolicy = "Always";
  const literal = (value: object) =>
    `import type { IDeployment } from "kubernetes-models/apps/v1"; export const a: IDeployment = ${JSON.stringify(value)};`;
  expect(typeErrors(literal(object))).toEqual([]);
  expect(typeErrors(literal(broken))).toEqual([expect.stringContaining("imagePolicy")]);
  broken.spec.replicas = "two";
  expect(() => new Deployment(broken as never).validate()).toThrow(/replicas/);
});
