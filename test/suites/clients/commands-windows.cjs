// Runs the commands of the npm package with paths as on Windows, over this machine's files: C:\a\b is /a/b here.
// usage: node commands-windows.cjs MAIN ARGUMENTS…
const fs = require("node:fs");
const path = require("node:path");

const [, , main, ...args] = process.argv;
/** Characters that no name on Windows has. */
const FORBIDDEN = /[:*?"<>|]/;

function toNative(name) {
  if (typeof name !== "string") return name;
  const below = name.replace(/^[A-Z]:/, "");
  if (FORBIDDEN.test(below))
    throw Object.assign(new Error(`ENOENT: ${name} is no name on Windows`), { code: "ENOENT" });
  return below.replaceAll("\\", "/");
}
const toWindows = (name) => `C:${name.replaceAll("/", "\\")}`;

/** The functions of a module of files, for names of Windows. */
function windowsFiles(module, isAsync) {
  const wrapped = {};
  for (const [name, value] of Object.entries(module)) {
    if (typeof value !== "function" || /^[A-Z]/.test(name)) {
      wrapped[name] = value;
      continue;
    }
    const isOfTwo = /^(rename|link|copyFile|cp)(Sync)?$/.test(name);
    const call = (first, second, ...rest) =>
      value.call(module, toNative(first), isOfTwo ? toNative(second) : second, ...rest);
    wrapped[name] = call;
    if (/^realpath/.test(name))
      wrapped[name] = isAsync ? async (first) => toWindows(await call(first)) : (first) => toWindows(call(first));
  }
  return wrapped;
}

const promises = windowsFiles(fs.promises, true);
const modules = { path: path.win32, "fs/promises": promises, fs: { ...windowsFiles(fs, false), promises } };
const load = (name) => modules[name.replace(/^node:/, "")] ?? require(name);

const source = fs.readFileSync(main, "utf8").replace(/^#!.*/, "");
const folder = process.cwd();
process.argv = [process.argv[0], main, ...args];
process.cwd = () => toWindows(folder);
Object.defineProperty(process, "platform", { value: "win32" });
process.geteuid = undefined;
process.getuid = undefined;
new Function("require", "module", "exports", "__dirname", "__filename", source)(
  load,
  { exports: {} },
  {},
  path.dirname(main),
  main,
);
