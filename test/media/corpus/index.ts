import { chains } from "./chains.ts";
import { containers } from "./containers.ts";
import { edits } from "./edits.ts";
import { faults } from "./faults.ts";
import { implicitAac } from "./implicit-aac.ts";
import { indexes } from "./indexes.ts";
import { pictures } from "./pictures.ts";
import { recorders } from "./recorders.ts";
import { reports } from "./reports.ts";
import { sounds } from "./sounds.ts";
import type { Source } from "./source.ts";
import { television, televisionJumps } from "./television.ts";
import { timing } from "./timing.ts";

/** What people upload: each row is a source that the system's ffmpeg makes, with what becomes of it. */
export const corpus: readonly Source[] = [
  ...containers,
  ...timing,
  ...sounds,
  ...pictures,
  ...faults,
  ...television,
  ...indexes,
  ...recorders,
  ...edits,
  ...televisionJumps,
  ...chains,
  ...implicitAac,
  ...reports,
];
