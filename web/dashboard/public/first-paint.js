// Blocking, before anything is painted: the colour scheme, language and direction that were chosen last.
(() => {
  const root = document.documentElement;
  const read = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // storage may be forbidden
    }
  };
  const chosen = read("cambist-color-scheme");
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.mantineColorScheme = dark ? "dark" : "light";
  const language = read("cambist-language");
  if (language) root.lang = language;
  if (language === "ar" || language === "fa") root.dir = "rtl";
})();
