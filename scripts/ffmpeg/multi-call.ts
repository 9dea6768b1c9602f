import { writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * ffmpeg and ffprobe as one program, which runs the one that it is called as: they share all but 0.3 % of their code, so
 * a second program would add 11 MB to the executable. Both define variables and functions of the same names, so the objects of each are
 * first linked into one that exports only its `main`, under another name. `vodbox.mak` is read after ffmpeg's Makefile, whose
 * pattern rule links `vodbox_g`.
 */
export const MULTI_CALL = {
  "fftools/vodbox.c": `#include <string.h>

int ffmpeg_main(int argc, char **argv);
int ffprobe_main(int argc, char **argv);
int main(int argc, char **argv);

int main(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";
    return strcmp(name, "ffprobe") ? ffmpeg_main(argc, argv) : ffprobe_main(argc, argv);
}
`,
  "vodbox.mak": `OBJS-vodbox = fftools/vodbox.o fftools/ffmpeg-only.o fftools/ffprobe-only.o
vodbox_g: $(OBJS-vodbox)
define ONLY
fftools/$(1)-only.o: $$(OBJS-$(1))
	$$(LD) -r -nostdlib -o $$@ $$^
	$$(OBJCOPY) --redefine-sym main=$(1)_main $$@
	$$(OBJCOPY) --keep-global-symbol=$(1)_main $$@
endef
$(eval $(call ONLY,ffmpeg))
$(eval $(call ONLY,ffprobe))
vodbox: vodbox_g
	$(STRIP) -o $@ $<
`,
} as const;

/** Writes these files into ffmpeg's source. */
export function addMultiCall(source: string): void {
  for (const [name, content] of Object.entries(MULTI_CALL)) writeFileSync(join(source, name), content);
}

/**
 * Arguments of `make` for the targets that the files define: `vodbox`, and the objects that it is linked from. `prefix`:
 * of the names of a cross compiler's programs.
 */
export const multiCallMake = (prefix = ""): string[] => [
  "-f",
  "Makefile",
  "-f",
  "vodbox.mak",
  `OBJCOPY=${prefix}objcopy`,
];
export const MULTI_CALL_OBJECTS = ["fftools/vodbox.o", "fftools/ffmpeg-only.o", "fftools/ffprobe-only.o"];
