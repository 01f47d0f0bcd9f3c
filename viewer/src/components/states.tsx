// What stands in the place of content: nothing yet, nothing at all, or a failure with the way out.
import type { ComponentChildren } from "preact";
import type { Loaded } from "../loading";

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state">
      <p class="state-title">{title}</p>
      {children && <div class="soft">{children}</div>}
    </div>
  );
}

export function Failure({ error, children }: { error: Error | string; children?: ComponentChildren }) {
  return (
    <div class="state failure" role="alert">
      <p class="state-title">
        <span aria-hidden="true">⚠ </span>
        {typeof error === "string" ? error : error.message}
      </p>
      {children && <div class="soft">{children}</div>}
    </div>
  );
}

export function Waiting({ what }: { what: string }) {
  return (
    <div class="state waiting" role="status">
      <span class="spinner" aria-hidden="true" /> {what} …
    </div>
  );
}

/** The content of something loaded, or the state that stands in its place. */
export function Shown<T>({ of, what, children }: { of: Loaded<T>; what: string; children: (data: T) => ComponentChildren }) {
  if (of.error) return <Failure error={of.error} />;
  if (of.data === null) return <Waiting what={`Reading ${what}`} />;
  return <>{children(of.data)}</>;
}
