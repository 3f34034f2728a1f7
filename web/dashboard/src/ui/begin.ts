/**
 * Show the app once its texts are there. Where none come, in no language, nothing of the app can be said: what is left says
 * so itself, and loads the page anew.
 */
export async function begin(root: HTMLElement, texts: Promise<void>, show: () => void): Promise<void> {
  try {
    await texts;
  } catch {
    const words = document.createElement("p");
    words.role = "alert";
    words.lang = "en";
    words.dir = "ltr";
    words.textContent = "The dashboard could not be loaded. ";
    const again = document.createElement("button");
    again.textContent = "Try again";
    again.addEventListener("click", () => {
      location.reload();
    });
    words.append(again);
    root.replaceChildren(words);
    return;
  }
  show();
}
