import { join } from "node:path";
import { type Binaries, run, type SourceRun, UNTIL_STALLED, untrustedInput } from "../ffmpeg.ts";
import { joinLinks } from "../ogg/join-links.ts";
import type { Probe } from "../probe.ts";
import { probeSource } from "../timeline.ts";
import { appendContinuations } from "../transport/continuations.ts";
import { changingPrograms, rewriteTransport } from "../transport/rewrite.ts";
import type { Shift } from "./packet-lines.ts";

type Source = { input: string; probe: Probe };

/**
 * A source whose times do not jump. ffmpeg corrects the times of a transport stream by itself; the packets of other containers are
 * copied to a file in the working directory with the times that were measured. What it returns needs no repair. Throws MediaError.
 */
export async function withoutJumps(
  { input: original, probe }: Source,
  { binaries, run: common, onMove }: { binaries: Binaries; run: SourceRun; onMove?: () => void },
): Promise<Source> {
  const { signal, pidDir, memoryBytes, cwd } = common;
  const options = { cwd, memoryBytes, onMove, ...(signal && { signal }), ...(pidDir && { pidDir }) };
  const { skipped, isTruncated, rewriting } = probe;
  const probed = async (path: string) => ({ ...(await probeSource(path, binaries, options)), skipped, isTruncated });
  if (rewriting === "programs") {
    const input = await rewritten(original, { probe, binaries, run: common, onMove });
    // Times in a stream that was rewritten do not jump.
    return { input, probe: { ...probe, jumps: null, rewriting: null } };
  }
  if (rewriting === "links") {
    const input = await joinLinks(original, { binaries, run: common, onMove }, (link) =>
      probeSource(link, binaries, options),
    );
    return { input, probe: { ...(await probed(input)), jumps: null } };
  }
  const input = original;
  const shifts = probe.jumps?.shifts ?? [];
  const jumps = probe.jumps && { ...probe.jumps, shifts: [] };
  if (shifts.length === 0) return { input, probe: { ...probe, jumps } };
  const tracks = [...(probe.video ? [probe.video] : []), ...probe.audio];
  const repaired = join(common.cwd, "repaired.mkv");
  await run(binaries.ffmpeg, {
    ...common,
    args: [
      ...["-nostdin", "-hide_banner", "-y", "-loglevel", "warning"],
      ...["-progress", "pipe:1", "-nostats", "-stats_period", "0.5"],
      ...untrustedInput(input),
      ...tracks.flatMap(({ index }, at) => ["-map", `0:${index}`, `-bsf:${at}`, shifted(index, shifts)]),
      // The unit of Matroska, so that the filter gets packets in the unit that it assumes.
      ...["-time_base", "1:1000"],
      // All packets: they are counted.
      ...["-c", "copy", "-copyinkf", "-copypriorss", "1", "-max_muxing_queue_size", "16384"],
      ...["-strict", "experimental", "-allow_raw_vfw", "1", "-f", "matroska", `file:${repaired}`],
    ],
    ...UNTIL_STALLED,
    onPosition: () => onMove?.(),
  });
  return { input: repaired, probe: { ...(await probed(repaired)), jumps } };
}

/** A copy in the working directory in which each track has one PID. */
async function rewritten(input: string, tools: Parameters<typeof appendContinuations>[2]): Promise<string> {
  const { cwd, signal } = tools.run;
  const progress = { signal, onMove: tools.onMove };
  const programs = await changingPrograms(input, progress);
  if (!programs) return input;
  const output = join(cwd, "programs.ts");
  await rewriteTransport(input, output, programs, progress);
  await appendContinuations(output, programs, tools);
  return output;
}

/** The bitstream filter that adds what is to be added from some packets on. */
function shifted(index: number, shifts: readonly Shift[]): string {
  const own = shifts.filter((one) => one.index === index);
  const terms = own.map(({ packet, seconds }, at) => {
    const by = seconds - (own[at - 1]?.seconds ?? 0);
    return `gte(N\\,${packet})*(${by.toFixed(6)})`;
  });
  const sum = `(${["0", ...terms].join("+")})/TB`;
  return `setts=pts=PTS+${sum}:dts=DTS+${sum}`;
}
