"use strict";
// What a page has beside its markup: the slider through time, the live tail, reloading, and forms that are
// sent once. Everything that comes from the cluster is put in as text, never as markup.

const SHOWN_MAX = 200;
const RELOAD_MS = 5000;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// --- text that does not print ----------------------------------------------------------------------------------

function plain(text) {
  const shown = text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (each) => {
    const number = each.codePointAt(0);
    return number > 0xffff ? `\\U${number.toString(16).padStart(8, "0")}` : `\\u${number.toString(16).padStart(4, "0")}`;
  });
  return shown.length <= 400 ? shown : `${shown.slice(0, 400)}… (${text.length.toLocaleString("en")} characters)`;
}

function shown(value) {
  return plain(typeof value === "string" ? value : JSON.stringify(value));
}

// --- the slider ------------------------------------------------------------------------------------------------

function slide(box) {
  const range = box.querySelector("input");
  const told = box.querySelector("output");
  const field = document.getElementById(box.dataset.slider);
  const oldest = Number(box.dataset.oldest);
  const now = Number(box.dataset.now);
  if (!(oldest < now)) return;
  const steps = Number(range.max);
  const given = Date.parse(field.value) || Number(field.value.split(".")[1]) || now;
  const at = () => new Date(Math.round(oldest + ((now - oldest) * range.value) / steps)).toISOString();
  const tell = () => {
    told.textContent = Number(range.value) === steps ? "now" : at().replace("T", " ").replace("Z", "");
    range.setAttribute("aria-valuetext", told.textContent);
  };
  range.value = Math.round(((Math.min(Math.max(given, oldest), now) - oldest) / (now - oldest)) * steps);
  range.addEventListener("input", () => {
    tell();
    field.value = Number(range.value) === steps ? "" : at();
  });
  let waits;
  range.addEventListener("change", () => {
    // By keyboard each step is a change: the page is asked for when the slider rests.
    clearTimeout(waits);
    waits = setTimeout(() => range.form.requestSubmit(), 600);
  });
  tell();
  box.hidden = false;
}

// --- the live tail ---------------------------------------------------------------------------------------------

function follow(section) {
  const list = section.querySelector("[data-events]");
  const waiting = section.querySelector("[data-waiting]");
  const status = section.querySelector("[data-status]");
  const held = [];
  let pauses = false;

  const say = (text) => {
    if (status.textContent !== text) status.textContent = text;
  };
  const pause = element("button", "Pause", { type: "button", "aria-pressed": "false" });
  pause.addEventListener("click", () => {
    pauses = !pauses;
    pause.setAttribute("aria-pressed", String(pauses));
    pause.textContent = pauses ? "Go on" : "Pause";
    if (!pauses) held.splice(0).forEach(add);
    say(pauses ? "Paused." : "Live.");
  });
  section.querySelector(".head").append(pause);

  function add({ kind, told }) {
    const line = document.createElement("li");
    line.className = `new ${kind === "delete" ? "removed" : told.previous === undefined ? "added" : "changed"}`;
    const wall = new Date(Number(told.timestamp.split(".")[1]));
    const word = kind === "delete" ? "delete" : told.previous === undefined ? "insert" : "update";
    line.append(
      element("time", wall.toISOString().replace("T", " ").replace("Z", ""), { title: told.timestamp }),
      element("span", word, { class: "verdict" }),
      element("strong", Array.isArray(told.key) ? told.key.map(shown).join(" / ") : shown(told.key)),
      element("span", shown(told.document ?? told.value ?? told.previous ?? "")),
    );
    list.prepend(line);
    while (list.children.length > SHOWN_MAX) list.lastChild.remove();
    waiting.hidden = true;
  }

  const events = new EventSource(section.dataset.watch);
  for (const kind of ["put", "delete"]) {
    events.addEventListener(kind, (event) => {
      const change = { kind, told: JSON.parse(event.data) };
      if (!pauses) return add(change);
      held.push(change);
      if (held.length > SHOWN_MAX) held.shift();
      say(`Paused; ${held.length} changes wait.`);
    });
  }
  events.addEventListener("open", () => say(pauses ? "Paused." : "Live."));
  events.addEventListener("problem", (event) => {
    events.close();
    say(JSON.parse(event.data).detail);
  });
  events.addEventListener("error", () => {
    say(events.readyState === EventSource.CLOSED ? "It ended: the gateway refused to go on." : "Connecting again…");
  });
}

// --- reloading -------------------------------------------------------------------------------------------------

function reload(head) {
  const box = element("input", "", { type: "checkbox", id: "reload" });
  const label = element("label", "", { class: "reload", for: "reload" });
  label.append(box, "Reload every 5 s");
  head.append(label);
  box.checked = sessionStorage.getItem("reload") === "yes";
  box.addEventListener("change", () => sessionStorage.setItem("reload", box.checked ? "yes" : "no"));
  setInterval(async () => {
    // Not under the hands of somebody who is typing or marking text.
    const busy = document.hidden || !document.getSelection().isCollapsed || document.activeElement.matches("main select, main input:not(#reload)");
    if (!box.checked || busy) return;
    try {
      const got = await fetch(location.href);
      if (!got.ok) return;
      const page = new DOMParser().parseFromString(await got.text(), "text/html");
      const [now, then] = [document.querySelector("main"), page.querySelector("main")];
      now.replaceChildren(head, ...[...then.children].filter((each) => !each.matches("[data-reload]")));
    } catch {
      // The gateway is away: what is shown stays, and the next time may do.
    }
  }, RELOAD_MS);
}

// --- acts ------------------------------------------------------------------------------------------------------

function once(form) {
  // Sent twice, it has one effect all the same; but a token is in the first answer alone.
  form.addEventListener("submit", () => form.querySelectorAll("button").forEach((each) => { each.disabled = true; }));
}

document.querySelectorAll("[data-once]").forEach(once);
document.querySelectorAll("[data-slider]").forEach(slide);
document.querySelectorAll("[data-watch]").forEach(follow);
document.querySelectorAll("[data-reload]").forEach(reload);
