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

/** The controls that cannot be used until what they asked for is done. */
const held = new WeakSet();

/** Does what a control asks for, which is not to be asked twice meanwhile. A control that is disabled loses the focus; it gets it back, unless the person went elsewhere. */
async function holding(control, work) {
  const hadFocus = document.activeElement === control;
  held.add(control);
  control.disabled = true;
  try {
    return await work();
  } finally {
    held.delete(control);
    control.disabled = false;
    if (hadFocus) refocus(control);
  }
}

/** Gives the focus to a control, if nothing else has it. */
function refocus(control) {
  if (document.activeElement === document.body) control.focus({ preventScroll: true });
}

/** Writes a key because a person asked, and says what came of it. */
const act = (name, value, done, control) => control ? holding(control, () => writing(name, value, done)) : writing(name, value, done);

async function writing(name, value, done) {
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
