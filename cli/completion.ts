import type { Command } from "commander";
import { UserError } from "#lib/base";
import { settingFlags } from "./settings.ts";

type Word = { word: string; about: string };
/** What may follow a command: its subcommands and options. `path` is the command's words after `vodbox`. */
type Node = { path: string; subcommands: Word[]; options: Word[] };

/** Prints the completion script of a shell, which contains all commands and options of this version. */
export function printCompletion(program: Command, shell: string): void {
  const script = SCRIPTS[shell];
  if (!script) throw new UserError(`There is no completion for ${shell}; use bash, zsh or fish.`, 2);
  process.stdout.write(script(nodesOf(program)));
}

const GLOBAL: Word[] = [
  ...settingFlags().map((word) => ({ word, about: "setting" })),
  { word: "--json", about: "print JSON" },
  { word: "--no-color", about: "print no colors" },
  { word: "--help", about: "display help" },
];

function nodesOf(command: Command, path = ""): Node[] {
  const subcommands = visibleCommands(command).map((one) => ({ word: one.name(), about: one.description() }));
  const options = command.options.flatMap(({ long, description }) =>
    long ? [{ word: long, about: description }] : [],
  );
  const below = visibleCommands(command).flatMap((one) => nodesOf(one, `${path} ${one.name()}`.trim()));
  return [{ path, subcommands, options: [...options, ...GLOBAL] }, ...below];
}

const words = (list: readonly Word[]) => list.map(({ word }) => word).join(" ");
/** For single quotes. */
const quoted = (text: string) => text.replaceAll("'", "'\\''");

/** A line for each command that extends the path: from its words so far and the next one, to its words. */
const steps = (nodes: readonly Node[], write: (from: string, to: string) => string) =>
  nodes
    .filter(({ path }) => path !== "")
    .map(({ path }) => write(path.includes(" ") ? path : ` ${path}`, path))
    .join("\n");

const SCRIPTS: Record<string, (nodes: Node[]) => string> = {
  bash: (nodes) => `# vodbox completion for bash: source <(vodbox completion bash)
_vodbox() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word subcommands options
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
${steps(nodes, (from, to) => `      '${from}') path='${to}' ;;`)}
    esac
  done
  case "$path" in
${nodes.map(({ path, subcommands, options }) => `    '${path}') subcommands='${words(subcommands)}' options='${words(options)}' ;;`).join("\n")}
  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -n $subcommands ]]; then
    COMPREPLY=($(compgen -W "$subcommands" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _vodbox vodbox
`,
  zsh: (nodes) => `#compdef vodbox
# vodbox completion for zsh: vodbox completion zsh > "\${fpath[1]}/_vodbox"
_vodbox() {
  local current="\${words[CURRENT]}" found="" word
  local -a subcommands options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$found $word" in
${steps(nodes, (from, to) => `      '${from}') found='${to}' ;;`)}
    esac
  done
  case "$found" in
${nodes.map(({ path, subcommands, options }) => `    '${path}') subcommands=(${described(subcommands)}) options=(${described(options)}) ;;`).join("\n")}
  esac
  if [[ $current == -* ]]; then
    _describe -o option options
  elif (( \${#subcommands} )); then
    _describe command subcommands
  else
    _files
  fi
}
if [[ "\${funcstack[1]}" == _vodbox ]]; then _vodbox "$@"; else compdef _vodbox vodbox; fi
`,
  fish: (nodes) => `# vodbox completion for fish: vodbox completion fish > ~/.config/fish/completions/vodbox.fish
function __vodbox_path
  set -l path ''
  for word in (commandline -opc)[2..-1]
    switch "$path $word"
${steps(nodes, (from, to) => `      case '${from}'\n        set path '${to}'`)}
    end
  end
  echo $path
end
function __vodbox_at
  set -l path (__vodbox_path)
  test "$path" = "$argv[1]"
end
complete -c vodbox -f
${nodes
  .flatMap(({ path, subcommands, options }) => {
    const at = `complete -c vodbox -n '__vodbox_at "${path}"'`;
    const files = subcommands.length === 0 ? [`${at} -F`] : [];
    return [
      ...files,
      ...subcommands.map(({ word, about }) => `${at} -a '${word}' -d '${quoted(about)}'`),
      ...options.map(({ word, about }) => `${at} -l '${word.slice(2)}' -d '${quoted(about)}'`),
    ];
  })
  .join("\n")}
`,
};

/** zsh separates word and description by a colon. */
const described = (list: readonly Word[]) =>
  list.map(({ word, about }) => `'${word}:${quoted(about).replaceAll(":", "\\:")}'`).join(" ");

/** Without those that `serve` starts. */
export const visibleCommands = (command: Command): Command[] => {
  const visible = new Set(command.createHelp().visibleCommands(command));
  return command.commands.filter((one) => visible.has(one));
};
