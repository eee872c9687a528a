// --- the heap monitor --------------------------------------------------------------------------
// Records each allocation and each free to a file on the process's machine.

/** A recording whose file is known, and its number. */
let recording = null;

async function showMonitor() {
  if (!visible.has("monitor")) return;
  let all;
  try {
    all = await read("/ctl/monitor");
  } catch (error) {
    if (error.status === 0 || error.status === 401) return;
    all = {};
  }
  $("monitor-start").disabled = all.active !== false;
  $("monitor-stop").disabled = all.active !== true;
  const dropped = all.dropped ? `, ${shown(all.dropped, "count")} could not be written` : "";
  const events = `${shown(all.events ?? 0, "count")} events${dropped}`;
  const file = recording && recording.number === all.recordings ? ` File: ${recording.file}` : "";
  say($("monitor-state"), all.active ? `Recording: ${events}.${file}`
    : all.events ? `The last recording has ${events}.${file}`
      : "Records each allocation and each free to a file, which \u201clumalloc events\u201d shows. The program runs slower meanwhile.");
}

/** Asks for a change of the monitor. */
async function changeMonitor(path, control, done) {
  const hadFocus = document.activeElement === control;
  await doing(control, async () => {
    const told = JSON.parse(await ask(path, { method: "POST" }));
    tell(done(told));
    if (told.file) recording = { file: told.file, number: (await read("/ctl/monitor.recordings")).value };
  });
  await showMonitor();
  // One of the two buttons can be used at a time.
  if (hadFocus && control.disabled && [control, document.body].includes(document.activeElement)) {
    $(control.id === "monitor-start" ? "monitor-stop" : "monitor-start").focus({ preventScroll: true });
  }
}

$("monitor-start").addEventListener("click", event => {
  const length = $("monitor-seconds");
  if (!length.reportValidity()) return;
  changeMonitor(`/monitor/start?seconds=${length.value}`, event.currentTarget, told => `Recording for ${seconds(told.seconds)}`);
});
$("monitor-stop").addEventListener("click", event =>
  changeMonitor("/monitor/stop", event.currentTarget, told => `${shown(told.events, "count")} events are recorded`));
