// Light or dark theme: the system's, or the reader's choice. Loaded before the rest, so that nothing flashes.

const KEY = "pellucid-theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };

function stored() {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto";
  }
}

let theme = NEXT[stored()] ? stored() : "auto";
apply();

function apply() {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Lets a button cycle through the themes. Calls `changed` whenever the colours change. */
export function start(button, changed) {
  const label = () => {
    button.querySelector("span").textContent = theme;
    button.setAttribute("aria-label", `Colours: ${theme}. Change to ${NEXT[theme]}`);
  };
  button.addEventListener("click", () => {
    theme = NEXT[theme];
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Without storage, the choice lasts as long as the page.
    }
    apply();
    label();
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  label();
}
