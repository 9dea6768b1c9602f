import type { Arch } from "../build/base.ts";
import { own } from "../build/paths.ts";
import { debianArch } from "../debian/packages.ts";

/** The files of a release for one processor. */
export const artifactNames = (arch: Arch) => {
  const base = `vodbox-${own.version}-linux-${arch}`;
  return {
    executable: base,
    sbom: `${base}.cdx.json`,
    image: `${base}.oci.tar`,
    deb: `vodbox_${own.version}_${debianArch(arch)}.deb`,
  };
};
