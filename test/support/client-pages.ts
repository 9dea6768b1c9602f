import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { build, type Plugin } from "esbuild";
import { paths } from "#scripts/build/paths.ts";

/** `npm` names of a version of React. */
export type React = { react: string; "react-dom": string };

/** Bundles a user's program, which imports installed packages of `folder`. */
export async function bundled(
  code: string,
  folder: string,
  { react, platform = "browser" }: { react?: React; platform?: "browser" | "node" } = {},
): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: folder },
    bundle: true,
    write: false,
    platform,
    format: "iife",
    globalName: "program",
    logLevel: "silent",
    define: {
      "process.env.NODE_ENV": '"development"',
      // Vue's own; it warns when they are not defined.
      __VUE_OPTIONS_API__: "true",
      __VUE_PROD_DEVTOOLS__: "false",
      __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: "false",
    },
    plugins: react ? [named(react)] : [vue],
  });
  return outputFiles[0]?.text ?? "";
}

/** Vue as it is installed here. */
const vue: Plugin = {
  name: "vue",
  setup(builder) {
    builder.onResolve({ filter: /^vue(\/server-renderer)?$/ }, ({ path, kind, pluginData }) =>
      pluginData === vue ? undefined : builder.resolve(path, { kind, resolveDir: paths.root, pluginData: vue }),
    );
  },
};

/** `react-dom-18` imports `react` by that name, and must get the version that belongs to it. */
const named = (names: React): Plugin => ({
  name: "react",
  setup(builder) {
    builder.onResolve({ filter: /^react(-dom)?(\/|$)/ }, ({ path, kind, pluginData }) => {
      if (pluginData === names) return undefined;
      const [name = "", ...rest] = path.split("/");
      const real = [names[name as keyof React], ...rest].join("/");
      return builder.resolve(real, { kind, resolveDir: paths.root, pluginData: names });
    });
  },
});

/** A site on an origin of its own, with these pages and scripts by their path. */
export async function startSite(files: Record<string, string>) {
  const server = createServer((request, response) => {
    const path = (request.url ?? "").split("?")[0] as string;
    const text = files[path];
    response.statusCode = text === undefined ? 404 : 200;
    response.setHeader("content-type", path.endsWith(".js") ? "text/javascript" : "text/html; charset=utf-8");
    response.end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://localhost:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
