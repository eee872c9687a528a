//! What a person does on the page takes effect.

use super::chromium::Browser;
use super::service::Service;
use super::{ALLOCATED, is_at_ease, page_of, tab_to};
use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

#[test]
#[ignore = "needs Chromium"]
fn an_arena_is_purged_and_a_finding_goes_away() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    let import = service.arena("import");
    let dirty = |service: &Service| {
        let name = format!("/ctl/stats.arenas.{import}.pdirty");
        service.get(&name)["value"].as_u64().unwrap()
    };
    assert!(dirty(&service) > 10_000);
    browser.wait_for_node("#found .finding strong");
    let finding = browser.text("#found .finding strong");
    assert!(finding.contains("of unused pages still have memory"), "{finding}");
    browser.click("[aria-label='Purge import']");
    browser.wait_for_like("#said", r"^Purged import: unused pages .* MiB → 0 B\.$");
    assert_eq!(dirty(&service), 0);
    browser.wait_for_node("#found .well");
    assert_eq!(browser.text("#found .well"), "✓ No problem was found.");
    browser.click("#purge-all");
    browser.wait_for_like("#said", r"^Purged all arenas: ");
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn regions_are_shown_where_there_are_any() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.wait_for("!document.getElementById('regions').hidden");
    browser.wait_for("document.querySelectorAll('#region-table tbody tr').length === 2");
    let names = browser.value(
        "[...document.querySelectorAll('#region-table tbody tr')]
           .map(row => [row.children[0].textContent, row.children[1].textContent])",
    );
    assert_eq!(names, serde_json::json!([["documents 0", "best"], ["nodes 1", "pool"]]));
    browser.click("#exact");
    browser.wait_for_like("#region-table tbody tr:first-child td:nth-child(4)", r"^[0-9,]+$");
    let address = browser.text("#region-table tbody tr:first-child td:nth-child(3)");
    let told = service.get("/ctl/vm.region.0.address")["value"].as_u64().unwrap();
    assert_eq!(address, format!("0x{told:x}"));
    let fragmented = browser.text("#region-table tbody tr:last-child td:last-child");
    assert_eq!(fragmented, "–", "blocks of a pool are all alike");
    is_at_ease(&mut browser, &service);

    let idle = Service::start(&["127.0.0.1:0", "idle"]);
    let mut browser = page_of(&idle);
    assert_eq!(browser.value("document.getElementById('regions').hidden"), true);
    assert_eq!(browser.value("document.getElementById('regions-link').hidden"), true);
}

#[test]
#[ignore = "needs Chromium"]
fn the_button_of_a_finding_does_what_helps() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.wait_for_node("#found .finding button");
    let last = "#found .finding button:last-child";
    assert_eq!(browser.text(last), "arena.4096.purge");
    browser.click(last);
    browser.wait_for_text("#said", "arena.4096.purge: done.");
    browser.wait_for_node("#found .well");
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn a_decay_time_is_changed_with_the_keyboard_alone() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    let sessions = service.arena("sessions");
    let field = "Dirty decay of sessions, in milliseconds";
    tab_to(&mut browser, field);
    assert_eq!(browser.value("document.activeElement.value"), "10000");
    browser.press("Backspace");
    browser.enter("2500");
    // A snapshot that arrives meanwhile does not change a field while it is typed in.
    let seen = browser.text("#version");
    let first = browser.text(ALLOCATED);
    browser.wait_for(&format!("document.querySelector({ALLOCATED:?}).textContent !== {first:?}"));
    assert_eq!(browser.value("document.activeElement.value"), "2500", "{seen}");
    browser.press("Enter");
    browser.wait_for(&format!(
        "document.querySelector('#said').textContent === 'arena.{sessions}.dirty_decay_ms = 2500'"
    ));
    let name = format!("/ctl/arena.{sessions}.dirty_decay_ms");
    assert_eq!(service.get(&name)["value"], 2500);
    // The decay time of new arenas.
    tab_to(&mut browser, "Muzzy decay of New arenas, in milliseconds");
    browser.press("Backspace");
    browser.enter("700");
    browser.press("Enter");
    browser
        .wait_for("document.querySelector('#said').textContent === 'arenas.muzzy_decay_ms = 700'");
    assert_eq!(service.get("/ctl/arenas.muzzy_decay_ms")["value"], 700);
    is_at_ease(&mut browser, &service);
}

/// The box of the thread that is kept does not show one that runs for a time, and turning it off
/// can be undone: both are as they were.
#[test]
#[ignore = "needs Chromium"]
fn the_boxes_of_the_background_threads_show_the_keys() {
    let service = Service::start(&["127.0.0.1:0", "idle"]);
    let mut browser = Browser::start();
    browser.size(1280, 800);
    let runs = "const fetched = window.fetch;
        window.fetch = async (path, options) => {
            const answer = await fetched(path, options);
            if (!path.startsWith('/stats')) return answer;
            const text = await answer.text();
            return new Response(text.replace(/\"num_threads\": *0/, '\"num_threads\":1'));
        };";
    browser.call("Page.addScriptToEvaluateOnNewDocument", serde_json::json!({ "source": runs }));
    browser.open(&service.url);
    browser.wait_for_text("#state", "Live");
    browser.value("document.querySelector('#decay').scrollIntoView()");
    let both = "background_thread = false; background_thread_auto is false by this too";
    for (kept, auto, id, said) in [
        (false, true, "#background", "background_thread = true"),
        (true, true, "#background", both),
        (false, false, "#background-auto", "background_thread_auto = true"),
        (false, true, "#background-auto", "background_thread_auto = false"),
        (false, false, "#background-auto", "background_thread_auto = true"),
        (false, true, "", ""),
    ] {
        browser.wait_for(&format!(
            "document.querySelector('#background').checked === {kept}
             && document.querySelector('#background-auto').checked === {auto}"
        ));
        assert_eq!(service.get("/ctl/background_thread")["value"], kept);
        assert_eq!(service.get("/ctl/background_thread_auto")["value"], auto);
        if !id.is_empty() {
            browser.click(id);
            browser.wait_for_text("#said", said);
        }
    }
    let about = "document.getElementById(document.querySelector('#background')
        .getAttribute('aria-describedby')).textContent";
    assert!(browser.value(about).as_str().unwrap().contains("turning it off turns"));
    is_at_ease(&mut browser, &service);
}

/// A button that is disabled while it works loses the focus.
#[test]
#[ignore = "needs Chromium"]
fn a_button_that_has_worked_has_the_focus_again() {
    let service = Service::profiled();
    let mut browser = page_of(&service);
    browser.value("document.querySelector('#profile').scrollIntoView()");
    browser.wait_for("!document.querySelector('#profile-draw').disabled");
    for (id, done) in [
        ("purge-all", "/^Purged all/.test(document.querySelector('#said').textContent)"),
        ("map-take", "document.querySelector('#map-take').textContent === 'Take it again'"),
        ("profile-draw", "!document.querySelector('#profile-picture').hidden"),
    ] {
        browser.value(&format!("document.querySelector('#{id}').focus()"));
        browser.press("Enter");
        browser.wait_for(&format!("{done} && !document.querySelector('#{id}').disabled"));
        browser.wait_for(&format!("document.activeElement.id === '{id}'"));
    }
    is_at_ease(&mut browser, &service);
}

/// The state of the profiler is read each second, and says which buttons can be used.
#[test]
#[ignore = "needs Chromium"]
fn a_button_that_works_cannot_be_used_meanwhile() {
    let service = Service::profiled();
    let mut browser = page_of(&service);
    browser.value("document.querySelector('#profile').scrollIntoView()");
    browser.wait_for("!document.querySelector('#profile-draw').disabled");
    browser.value(
        "const plain = window.fetch;
         var states = 0, answer = null;
         window.fetch = (path, options) => {
             states += path === '/ctl/prof';
             return path.startsWith('/flamegraph')
                 ? new Promise(done => { answer = () => done(plain(path, options)); })
                 : plain(path, options);
         };
         0",
    );
    browser.click("#profile-draw");
    browser.wait_for("answer");
    browser.value("states = 0");
    browser.wait_for("states > 2");
    assert_eq!(browser.value("document.querySelector('#profile-draw').disabled"), true);
    browser.value("answer()");
    browser.wait_for("!document.querySelector('#profile-draw').disabled");
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn every_key_is_found_read_and_set() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.value("document.querySelector('#settings').scrollIntoView()");
    let keys = service.get("/ctl").as_array().unwrap().clone();
    browser.wait_for_text("#settings-note", &format!("{0} of {0} keys", keys.len()));
    browser.click("#search");
    browser.enter("limit.soft");
    let told = |key: &&Value| format!("{} {}", key["name"], key["help"]).contains("limit.soft");
    let found = keys.iter().filter(told).count();
    browser.wait_for_text("#settings-note", &format!("{found} of {} keys", keys.len()));
    let row = "#keys .key:not([hidden]):has([aria-label='New value of limit.soft'])";
    browser.wait_for_text(&format!("{row} .value"), "0 bytes");
    let about = browser.text(&format!("{row} p"));
    assert!(
        about.contains("purges unused pages") && about.ends_with("size_t · bytes · rw"),
        "{about}"
    );
    browser.click("[aria-label='New value of limit.soft']");
    browser.enter("8589934592");
    browser.press("Enter");
    browser.wait_for_text("#said", "limit.soft = 8589934592");
    assert_eq!(service.get("/ctl/limit.soft")["value"], 8_589_934_592_u64);
    browser.wait_for_node("#tiles meter");
    browser.wait_for_like("#tiles", r"of limit\.soft, 8 GiB");
    is_at_ease(&mut browser, &service);
    // The value is refused with the exporter's reason.
    browser.click("[aria-label='New value of limit.soft']");
    browser.enter("-5");
    browser.press("Enter");
    browser.wait_for_text("#said", "limit.soft: -5 is not fit; its type is size_t, its unit bytes");
    assert_eq!(service.get("/ctl/limit.soft")["value"], 8_589_934_592_u64);
}

#[test]
#[ignore = "needs Chromium"]
fn a_token_is_asked_for_and_used() {
    let file = std::env::temp_dir().join(format!("lumalloc-page-token-{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&file).unwrap().write_all(b"open-sesame-open-sesame\n").unwrap();
    let token = format!("token={}", file.display());
    let service = Service::start(&["127.0.0.1:0", &token]);
    let mut browser = Browser::start();
    browser.open(&service.url);
    browser.wait_for("!document.querySelector('#token').hidden");
    assert_eq!(browser.value("document.activeElement.id"), "token-text");
    browser.enter("wrong");
    browser.press("Enter");
    browser.wait_for_text("#state", "Refused: this is not the token");
    browser.wait_for("!document.querySelector('#token').hidden");
    browser.enter("open-sesame-open-sesame");
    browser.press("Enter");
    browser.wait_for_text("#state", "Live");
    browser.click("[aria-label='Purge import']");
    browser.wait_for_like("#said", r"^Purged import");
    let kept = browser.value("JSON.stringify([localStorage, sessionStorage, document.cookie])");
    assert!(!kept.as_str().unwrap().contains("sesame"), "{kept}");
    let _ = std::fs::remove_file(file);
}
