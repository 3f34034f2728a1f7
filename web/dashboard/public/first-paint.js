// Blocking, before anything is painted: the colour scheme that was chosen last, and the language with its direction.
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

  // As src/i18n/locale.ts knows them: a test holds both to the same.
  const tags = {
    en: "en",
    de: "de",
    fr: "fr",
    es: "es",
    pt: "pt-BR",
    ru: "ru",
    tr: "tr",
    ar: "ar",
    zh: "zh-Hans",
    ja: "ja",
  };
  const wanted = [read("cambist-language") || "", ...navigator.languages].map((one) => one.split("-")[0]);
  const language = wanted.find((one) => Object.hasOwn(tags, one)) || "en";
  root.lang = tags[language];
  root.dir = language === "ar" ? "rtl" : "ltr";
})();
