import { useEffect } from "preact/hooks";
import { filesOf } from "../pages/uploads/dropped-files.ts";

/** A file input takes drops by itself. */
const isFileInput = ({ target }: Event) => target instanceof HTMLInputElement && target.type === "file";
const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes("Files") ?? false;

/**
 * Files that are dropped anywhere on the console are uploaded: without this, the browser would open them in place of the page.
 * `tenantId` is that of the session; null where there is none to upload to, which ignores the drop. `onAdded`: called when uploads
 * have begun.
 */
export function useDrops(tenantId: number | null, onAdded: () => void): void {
  useEffect(() => {
    const accept = (event: DragEvent) => {
      if (hasFiles(event) && !isFileInput(event)) event.preventDefault();
    };
    const take = async (event: DragEvent) => {
      // A part of the page that takes drops has done so.
      if (!hasFiles(event) || isFileInput(event) || event.defaultPrevented) return;
      event.preventDefault();
      if (!event.dataTransfer || tenantId === null) return;
      const [files, { transfers }] = await Promise.all([
        filesOf(event.dataTransfer),
        import("../pages/uploads/transfers.ts"),
      ]);
      if (files.length === 0) return;
      transfers.add(files, { owner: String(tenantId), tenantId: null, collectionId: null });
      onAdded();
    };
    addEventListener("dragover", accept);
    addEventListener("drop", take);
    return () => {
      removeEventListener("dragover", accept);
      removeEventListener("drop", take);
    };
  }, [tenantId]);
}
