// --- asking the exporter -----------------------------------------------------------------------

let token = "";

/** What went wrong, with the status: 0 when there was no answer at all. */
class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** Asks, and waits no longer than the exporter itself would. */
async function ask(path, options = {}) {
  const headers = { Accept: "application/json", ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  let answer, text;
  try {
    answer = await fetch(path, { ...options, headers, cache: "no-store", signal: AbortSignal.timeout(15000) });
    text = await answer.text();
  } catch (error) {
    throw new Refused(0, error.name === "TimeoutError" ? "no answer within 15 s" : "no connection");
  }
  if (!answer.ok) throw new Refused(answer.status, text.trim() || answer.statusText);
  return text;
}

const read = async path => JSON.parse(await ask(path));

/** Writes a key, or does what it is for when the value is null. */
const write = (name, value) => ask(`/ctl/${name}`, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(value),
});

/** Writes a key because a person asked, and says what came of it. */
async function act(name, value, done, control) {
  if (control) control.disabled = true;
  try {
    await write(name, value);
    await poll();
    showValues(true);
    tell(typeof done === "function" ? done() : done);
    return true;
  } catch (error) {
    if (error.status === 401) askForToken();
    tell(error.status ? error.message : `${name}: ${error.message}`, true);
    return false;
  } finally {
    if (control) control.disabled = false;
  }
}

let silence;

/** One line at the foot of the page; screen readers say it. */
function tell(text, isBad = false) {
  $("said").classList.toggle("bad", isBad);
  say($("said"), text);
  clearTimeout(silence);
  silence = setTimeout(() => say($("said"), ""), isBad ? 12000 : 6000);
}

function askForToken() {
  if (!$("token").hidden) return;
  $("token").hidden = false;
  $("token-text").focus();
}

$("token").addEventListener("submit", event => {
  event.preventDefault();
  token = $("token-text").value.trim();
  $("token-text").value = "";
  $("token").hidden = true;
  refresh();
});
