"use strict";
// Builds a form from the OpenAPI document, and sends what it says. Everything is put in as text, never as markup.

const choice = document.getElementById("operation");
const summary = document.getElementById("summary");
const fields = document.getElementById("fields");
const answer = document.getElementById("answer");
let operations = [];

function field(name, where, meaning, long) {
  const label = document.createElement("label");
  label.append(name, " ");
  const told = document.createElement("small");
  told.textContent = `${where}${meaning ? ": " + meaning : ""}`;
  const input = document.createElement(long ? "textarea" : "input");
  input.dataset.name = name;
  input.dataset.where = where;
  label.append(told, input);
  fields.append(label);
}

function show() {
  const chosen = operations[choice.value];
  summary.textContent = chosen.told.summary;
  fields.replaceChildren();
  for (const each of chosen.told.parameters) field(each.name, each.in, each.description, false);
  const takes = Object.keys(chosen.told.requestBody?.content ?? {});
  if (takes.length) field("Content-Type", "header", takes.join(" or "), false);
  if (takes.length) field("body", "body", "", true);
  const type = fields.querySelector('[data-name="Content-Type"]');
  if (type) type.value = takes[0];
}

function encoded(name, value) {
  // The rest of a path is a key of several parts: each slash between them stays.
  return name === "key" ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
}

async function send(event) {
  event.preventDefault();
  const chosen = operations[choice.value];
  let path = chosen.path;
  const query = new URLSearchParams();
  const request = { method: chosen.method, headers: {} };
  for (const each of fields.querySelectorAll("[data-name]")) {
    const { name, where } = each.dataset;
    if (where === "path") path = path.replace(`{${name}}`, encoded(name, each.value));
    else if (where === "body") request.body = each.value;
    else if (each.value && where === "query") query.set(name, each.value);
    else if (each.value) request.headers[name] = each.value;
  }
  answer.textContent = "...";
  try {
    const got = await fetch(query.size ? `${path}?${query}` : path, request);
    const headers = [...got.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    answer.textContent = `${got.status} ${got.statusText}\n${headers}\n\n`;
    const reader = got.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader.read()) {
      answer.append(piece.value);
    }
  } catch (error) {
    answer.textContent = String(error);
  }
}

async function begin() {
  const told = await (await fetch("/openapi.json")).json();
  for (const [path, methods] of Object.entries(told.paths)) {
    for (const [method, each] of Object.entries(methods)) {
      operations.push({ path, method: method.toUpperCase(), told: each });
    }
  }
  operations.sort((one, other) => one.path.startsWith("/v1/") < other.path.startsWith("/v1/") ? 1 : -1);
  operations.forEach((each, place) => choice.append(new Option(`${each.method} ${each.path}`, place)));
  show();
}

choice.addEventListener("change", show);
document.getElementById("form").addEventListener("submit", send);
begin();
