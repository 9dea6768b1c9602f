import { type ComponentChildren, createContext } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { useTexts } from "../texts/texts.tsx";

type Props = { title: string; children: ComponentChildren; onClose(): void };

/** Closes the dialog around the caller; null outside of one. */
export const CloseContext = createContext<(() => void) | null>(null);

/** A modal dialog: the browser keeps the focus inside, and Escape closes it. */
export function Dialog({ title, children, onClose }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => element.current?.showModal(), []);
  return (
    <dialog ref={element} aria-labelledby={id} onClose={onClose}>
      <h2 id={id}>{title}</h2>
      <CloseContext.Provider value={onClose}>{children}</CloseContext.Provider>
    </dialog>
  );
}

/** Asks before something that cannot be undone. */
export function ConfirmDialog({ text, onConfirm, onClose }: { text: string; onConfirm(): void; onClose(): void }) {
  const t = useTexts();
  return (
    <Dialog title={text} onClose={onClose}>
      <div class="row end">
        <button type="button" onClick={onClose}>
          {t("cancel")}
        </button>
        <button type="button" class="danger" onClick={onConfirm}>
          {t("confirm")}
        </button>
      </div>
    </Dialog>
  );
}
