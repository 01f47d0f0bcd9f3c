// The frame around every page: where one is, where one can go, colors and keys.
import { useEffect, useRef } from "preact/hooks";
import { go, href, place } from "./address";
import { Guarded } from "./components/guarded";
import { KeyList } from "./components/key_list";
import { keysShown, useKeys } from "./keys";
import { pageAt } from "./pages";
import { index, personal, showPersonal } from "./source";
import { nextTheme, theme } from "./theme";

const THEME_WORDS = { auto: "Colors: as the system", light: "Colors: light", dark: "Colors: dark" };
const THEME_ICONS = { auto: "◐", light: "☀", dark: "☾" };

export function Shell() {
  const { path } = place.value;
  const { page, params } = pageAt(path.length === 0 ? ["runs"] : path);
  const main = useRef<HTMLElement>(null);
  const address = path.join("/");
  const first = useRef(true);
  const title = page.title(params);
  useEffect(() => {
    document.title = `${title} · AgentUnit`;
    // A reader without a pointer starts at the top of the new page, not at the link that led here.
    if (!first.current) main.current?.focus({ preventScroll: true });
    if (!first.current) window.scrollTo(0, 0);
    first.current = false;
  }, [address, title]);
  useKeys("Everywhere", [
    { key: "?", does: "show or hide the keys", act: () => (keysShown.value = !keysShown.value) },
    { key: "g r", does: "go to the runs", act: () => go(href(["runs"])) },
    { key: "g m", does: "go to the metrics", act: () => go(href(["metrics"])) },
    { key: "T", does: "change the colors", act: nextTheme },
    { key: "/", does: "search or filter", act: focusSearch },
  ]);
  const Content = page.show;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href={href(["runs"])}>AgentUnit</a>
        <nav aria-label="Main">
          <a href={href(["runs"])} aria-current={path[0] === "runs" || path.length === 0 ? "page" : undefined}>Runs</a>
          <a href={href(["metrics"])} aria-current={path[0] === "metrics" ? "page" : undefined}>Metrics</a>
        </nav>
        <span class="grow" />
        {index.value?.can_unmask && (
          <label class="row small soft switch" title="Personal data is masked unless you ask for it">
            <input type="checkbox" aria-label="show personal data" checked={personal.value}
              onChange={(event) => showPersonal(event.currentTarget.checked)} />
            <span>personal<span class="wide"> data</span></span>
          </label>
        )}
        <button type="button" class="quiet" onClick={nextTheme} title={THEME_WORDS[theme.value]}
          aria-label={THEME_WORDS[theme.value]}>
          <span aria-hidden="true">{THEME_ICONS[theme.value]}</span>
        </button>
        <button type="button" class="quiet" onClick={() => (keysShown.value = true)} aria-label="Keys" title="Keys (?)">
          <kbd aria-hidden="true">?</kbd>
        </button>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Guarded key={address}>
          <Content params={params} />
        </Guarded>
      </main>
      <KeyList />
    </>
  );
}

function focusSearch(): void {
  document.querySelector<HTMLElement>("[data-search]")?.focus();
}
