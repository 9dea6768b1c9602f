import { type ComponentChildren, createContext } from "preact";
import { useCallback, useContext, useState } from "preact/hooks";

const SHOWN_MS = 4000;
const ToastContext = createContext<(text: string) => void>(() => {});

/** Short messages at the edge of the page, which screen readers announce. */
export function ToastProvider({ children }: { children: ComponentChildren }) {
  const [text, setText] = useState("");
  const show = useCallback((next: string) => {
    setText(next);
    setTimeout(() => setText((current) => (current === next ? "" : current)), SHOWN_MS);
  }, []);
  return (
    <ToastContext.Provider value={show}>
      {children}
      <div class="toast" role="status">
        {text}
      </div>
    </ToastContext.Provider>
  );
}

export const useToast = () => useContext(ToastContext);
