// --- findings: what is wrong -------------------------------------------------------------------

let findings = null;

/** The keys that would help, as the doctor's text names them: `arena.4096.purge`, `name=value`. */
function remedies(help) {
  const found = [];
  for (const [, name, , value] of help.matchAll(/\b([a-z_]+(?:\.[a-z0-9_]+)+|background_thread)(=(-?\w+))?/g)) {
    if (/^arena\.\d+\.(purge|decay)$/.test(name)) found.push([name, null]);
    else if (value != null) found.push([name, value === "true" || value === "false" ? value === "true" : Number(value)]);
  }
  return found;
}

function findingItem() {
  const what = el("strong"), help = el("p"), buttons = el("div", { class: "row" });
  const update = finding => {
    say(what, finding.what);
    if (help.textContent === finding.help) return;
    say(help, finding.help);
    buttons.replaceChildren(...remedies(finding.help).map(([name, value]) => {
      const text = value == null ? name : `${name}=${value}`;
      const button = el("button", { type: "button",
        onclick: () => act(name, value, () => `${text}: done.`, button).then(examine) }, el("code", {}, text));
      return button;
    }));
  };
  return { node: el("li", { class: "finding" }, what, help, buttons), update };
}

async function examine() {
  try {
    const told = await read("/doctor");
    findings = Array.isArray(told) ? told : told.findings;
  } catch (error) {
    if (error.status === 0 || error.status === 401) return;
    findings = null;
    showNothing(`Not examined: ${error.message}.`, "quiet");
    return;
  }
  say($("findings-title"), findings.length ? `Findings (${findings.length})` : "Findings");
  if (findings.length) keyed($("found"), findings, finding => finding.rule, findingItem);
  else showNothing("✓ No problem was found.", "well");
}

function showNothing(text, look) {
  $("found").kept = new Map();
  if ($("found").textContent !== text) $("found").replaceChildren(el("li", { class: look }, text));
}
