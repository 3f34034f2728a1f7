// Brings the page to life where scripts run; without it everything is there all the same, as the server drew it.
"use strict";

const FALLBACK_MS = 10_000;
const COPIED_MS = 2_000;
const SOON_MS = 5 * 60_000;
// Some proxies hold a stream back, and some connections end without a word: whoever was told nothing for so long asks.
const SILENCE_MS = 30_000;
// A connection may end and begin anew without anything being wrong: only then is it found out whether the gateway answers.
const RECONNECTED_MS = 5_000;
const ONCE_MORE_MS = 2_000;
const ANSWER_MS = 15_000;

document.documentElement.classList.add("scripted");

// -- copying ---------------------------------------------------------------------------------------------------

async function copyText(source) {
  const text = source.textContent.trim();
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without https there is no clipboard for scripts: select the text and let the browser copy the selection.
    getSelection().selectAllChildren(source);
    return document.execCommand("copy");
  }
}

async function onCopy(button) {
  const label = button.querySelector("span");
  const copied = await copyText(document.getElementById(button.dataset.copies));
  label.textContent = copied ? "Copied" : "Selected";
  button.dataset.copied = "";
  announce(copied ? `Copied ${button.dataset.copies}` : "Selected, ready to copy");
  setTimeout(() => {
    label.textContent = "Copy";
    delete button.dataset.copied;
  }, COPIED_MS);
}

function announce(text) {
  const voice = document.querySelector("[data-region='announce']");
  if (voice) voice.textContent = text;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.copies) onCopy(button);
  if ("prints" in button.dataset) print();
  if (button.id === "stay") stay();
});

// -- countdown: by the server's clock, from the moment its answer came ----------------------------------------------

let deadline = null;

function clockText(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const two = (n) => String(n).padStart(2, "0");
  const hours = Math.floor(seconds / 3600);
  const minutes = two(Math.floor(seconds / 60) % 60);
  if (hours >= 24) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  return hours ? `${hours}:${minutes}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

function startClock() {
  const clock = document.getElementById("clock");
  deadline = clock ? performance.now() + Number(clock.dataset.remainingMs) : null;
  tick();
}

function tick() {
  const digits = document.querySelector("#clock .digits");
  const isRunning = deadline !== null && digits !== null;
  const left = isRunning ? deadline - performance.now() : 0;
  showOver(isRunning && left <= 0);
  if (!isRunning) return;
  digits.textContent = clockText(left);
  digits.closest("[data-region]").toggleAttribute("data-soon", left < SOON_MS);
}

/** Ask for no money any more once the time is up, also where nobody is there to say so. */
function showOver(isOver) {
  const over = document.getElementById("over");
  const card = document.getElementById("card");
  if (!over || !card || card.hasAttribute("data-over") === isOver) return;
  card.toggleAttribute("data-over", isOver);
  over.hidden = !isOver;
  if (isOver) announce(over.textContent.trim());
}

setInterval(tick, 500);

// -- going on to the shop by itself, once, and never against the customer's will ------------------------------------

let returning = null;

function startReturn() {
  const way = document.getElementById("forward");
  const seconds = Number(way?.dataset.autoS);
  if (!seconds || returning !== null || wasReturned(true)) return;
  let left = seconds;
  const show = () => {
    document.getElementById("auto-s").textContent = String(left);
  };
  show();
  document.getElementById("auto").hidden = false;
  returning = setInterval(() => {
    if (document.hidden) return;
    left -= 1;
    if (left > 0) return show();
    clearInterval(returning);
    location.assign(way.href);
  }, 1000);
}

function wasReturned(mark) {
  const key = `returned:${document.getElementById("card").dataset.publicId}`;
  try {
    const before = sessionStorage.getItem(key) !== null;
    if (mark) sessionStorage.setItem(key, "1");
    return before;
  } catch {
    return false;
  }
}

function stay() {
  clearInterval(returning);
  document.getElementById("auto").hidden = true;
  document.getElementById("forward").focus();
}

// -- following the payment or account -----------------------------------------------------------------------------------------

function apply(html) {
  const next = new DOMParser().parseFromString(html, "text/html").getElementById("card");
  const card = document.getElementById("card");
  if (!next || !card) return;
  const focused = document.activeElement?.id;
  for (const name of next.getAttributeNames()) card.setAttribute(name, next.getAttribute(name));
  document.title = next.dataset.title;
  for (const region of next.querySelectorAll("[data-region]")) {
    const current = card.querySelector(`[data-region="${region.dataset.region}"]`);
    if (current && current.dataset.drawn !== region.innerHTML) {
      current.dataset.drawn = region.innerHTML;
      current.replaceChildren(...region.childNodes);
    }
  }
  if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus({ preventScroll: true });
  startClock();
  startReturn();
}

// Cards are numbered as they are asked for: a slow answer says how it was before what is shown by then.
let asked = 0;
let shown = 0;
let toldAt = performance.now();

function show(number, html) {
  toldAt = performance.now();
  answered();
  if (number < shown) return;
  shown = number;
  apply(html);
}

async function refresh() {
  const number = ++asked;
  const ended = new AbortController();
  const timer = setTimeout(() => ended.abort(), ANSWER_MS);
  try {
    const answer = await fetch(location.pathname + location.search, { cache: "no-store", signal: ended.signal });
    if (answer.ok) return show(number, await answer.text());
  } catch {
    // It is tried again below.
  } finally {
    clearTimeout(timer);
  }
  notAnswered();
}

// -- saying that the page is out of date while nobody answers ---------------------------------------------------------

let unanswered = 0;
let nextTry = null;

function tryIn(ms) {
  nextTry ??= setTimeout(() => {
    nextTry = null;
    // Whoever looks again asks at once.
    if (!document.hidden && canChange()) refresh();
  }, ms);
}

function answered() {
  unanswered = 0;
  clearTimeout(nextTry);
  nextTry = null;
  const away = document.getElementById("away");
  if (away.hidden) return;
  away.hidden = true;
  announce("This page is up to date again.");
}

function notAnswered() {
  unanswered += 1;
  const away = document.getElementById("away");
  // Once is a moment without a network, as when a phone wakes up.
  if (unanswered > 1 && away.hidden) {
    away.hidden = false;
    announce(away.textContent.trim());
  }
  tryIn(unanswered > 1 ? FALLBACK_MS : ONCE_MORE_MS);
}

function canChange() {
  return Boolean(document.getElementById("card")?.dataset.refreshS);
}

function listen() {
  if (document.hidden || !canChange() || nextTry !== null || performance.now() - toldAt < SILENCE_MS) return;
  toldAt = performance.now();
  refresh();
}

function follow() {
  if (!canChange()) return;
  const events = new EventSource(`${location.pathname}/events${location.search}`);
  events.addEventListener("card", (event) => show(++asked, event.data));
  events.addEventListener("end", () => events.close());
  events.addEventListener("error", () => {
    // The browser connects again by itself, unless the server had no room: then ask now and again, and no more than that.
    if (events.readyState !== EventSource.CLOSED) tryIn(RECONNECTED_MS);
    else if (canChange()) setTimeout(() => refresh().then(follow), FALLBACK_MS);
  });
}

if (document.getElementById("card")) {
  for (const region of document.querySelectorAll("[data-region]")) region.dataset.drawn = region.innerHTML;
  startClock();
  startReturn();
  follow();
  setInterval(listen, FALLBACK_MS);
  // A phone drops connections while the customer is in the wallet.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && canChange()) refresh();
  });
}
