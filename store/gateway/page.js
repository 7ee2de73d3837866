"use strict";
// Builds a form from the OpenAPI document, and sends what it says. Everything is put in as text, never as markup.

const GROUPS = [
  ["Documents", /^\/v1\/db\//],
  ["Pairs", /^\/v1\/kv\//],
  ["Schema registry", /^\/(subjects|schemas|compatibility|config|mode|contexts|v1\/metadata|$)/],
  ["The API, as JSON", /^\/cortado\./],
  ["Others", /^/],
];
const SHOWN_MAX = 1 << 20; // Characters of an answer: some have no end.

const at = (id) => document.getElementById(id);
let operations = [];
let running = null;

function field(name, told, input) {
  const label = document.createElement("label");
  const note = document.createElement("small");
  note.textContent = told;
  label.append(name, " ", note, input);
  at("fields").append(label);
  return input;
}

function input(name, where, kind = "input") {
  const made = document.createElement(kind);
  Object.assign(made.dataset, { name, where });
  return made;
}

function choice(name, where, values) {
  const made = input(name, where, "select");
  for (const each of values) made.append(new Option(each || "(not sent)", each));
  return made;
}

function show() {
  const { told } = operations[at("operation").value];
  at("summary").textContent = told.summary;
  at("fields").replaceChildren();
  for (const each of told.parameters) {
    const is_flag = each.schema.type === "boolean";
    const made = is_flag ? choice(each.name, each.in, ["", "true", "false"]) : input(each.name, each.in);
    made.required = each.in === "path";
    field(each.name, [each.in, each.description].filter(Boolean).join(": "), made);
  }
  const gives = new Set(Object.values(told.responses).flatMap((each) => Object.keys(each.content ?? {})));
  gives.delete("application/problem+json");
  if (gives.size > 1) field("Accept", "header", choice("Accept", "header", ["", ...gives]));
  const takes = Object.keys(told.requestBody?.content ?? {});
  if (!takes.length) return;
  field("Content-Type", "header", choice("Content-Type", "header", takes));
  const body = field("body", "", input("body", "body", "textarea"));
  body.value = takes[0].endsWith("json") ? "{}" : "";
  body.spellcheck = false;
}

function segment(text) {
  // A browser takes such a segment away, with the one before it, however it is written: another key would be meant.
  if (/^\.\.?$/.test(text)) throw new Error(`a browser cannot send ${text} as a part of a path`);
  return encodeURIComponent(text);
}

function request() {
  const { method, path, told } = operations[at("operation").value];
  const query = new URLSearchParams();
  const made = { method, headers: {} };
  const parts = {};
  for (const each of at("fields").querySelectorAll("[data-name]")) {
    const { name, where } = each.dataset;
    // The rest of a path is a key of several parts: each slash between them stays.
    if (where === "path") parts[name] = (name === "key" ? each.value.split("/") : [each.value]).map(segment).join("/");
    else if (where === "body") made.body = each.value;
    else if (each.value && where === "query") query.set(name, each.value);
    else if (each.value) made.headers[name] = each.value;
  }
  const url = path.replace(/\{(\w+)\}/g, (_, name) => parts[name]);
  return [query.size ? `${url}?${query}` : url, made];
}

function hex(bytes) {
  return [...bytes].map((each) => each.toString(16).padStart(2, "0")).join(" ");
}

async function read(got) {
  const type = got.headers.get("Content-Type") ?? "";
  const is_text = /^text\/|json|javascript/.test(type);
  const decoder = new TextDecoder();
  const reader = got.body?.getReader();
  let length = 0;
  for (let piece = await reader?.read(); piece && !piece.done; piece = await reader.read()) {
    const text = is_text ? decoder.decode(piece.value, { stream: true }) : `${hex(piece.value)}\n`;
    length += text.length;
    at("answer").append(text);
    if (length > SHOWN_MAX) {
      at("answer").append("\n... and more, which is not shown");
      await reader.cancel();
      return;
    }
  }
}

async function send(event) {
  event.preventDefault();
  running?.abort();
  const own = new AbortController();
  running = own;
  at("stop").disabled = false;
  at("state").textContent = "Waits for an answer";
  at("answer").textContent = "";
  try {
    const [url, made] = request();
    const got = await fetch(url, { ...made, signal: own.signal });
    at("state").textContent = `${got.status} ${got.statusText}`;
    at("answer").textContent = [...got.headers].map(([name, value]) => `${name}: ${value}\n`).join("") + "\n";
    await read(got);
  } catch (error) {
    if (running === own) at("state").textContent = own.signal.aborted ? `${at("state").textContent}; stopped` : error.message;
  }
  if (running === own) at("stop").disabled = true;
}

async function begin() {
  const told = await (await fetch("/openapi.json")).json();
  for (const [path, methods] of Object.entries(told.paths)) {
    for (const [method, each] of Object.entries(methods)) {
      operations.push({ path, method: method.toUpperCase(), told: each });
    }
  }
  const groups = GROUPS.map(([label]) => Object.assign(document.createElement("optgroup"), { label }));
  operations.forEach(({ method, path }, place) => {
    const group = GROUPS.findIndex(([, pattern]) => pattern.test(path));
    groups[group].append(new Option(`${method} ${path}`, place));
  });
  at("operation").append(...groups);
  at("operation").selectedIndex = 0;
  show();
}

at("operation").addEventListener("change", show);
at("form").addEventListener("submit", send);
at("stop").addEventListener("click", () => running?.abort());
begin().catch((error) => { at("state").textContent = error.message; });
