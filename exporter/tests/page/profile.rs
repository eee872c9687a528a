//! The heap profile: its state, the switch, and the stacks as a picture.

use super::chromium::Browser;
use super::service::Service;
use super::{is_at_ease, page_of};
use serde_json::json;

/// The names of the frames that are drawn.
const FRAMES: &str =
    "[...document.querySelectorAll('#profile-picture .frame')].map(node => node.textContent)";

fn show(browser: &mut Browser) {
    browser.value("document.querySelector('#profile').scrollIntoView()");
}

#[test]
#[ignore = "needs Chromium"]
fn the_stacks_are_drawn_and_the_profiler_is_switched() {
    let service = Service::profiled();
    let mut browser = page_of(&service);
    show(&mut browser);
    browser.wait_for_like(
        "#profile-state",
        r"^One sample in 16\sKiB on average\. [0-9.\skM]+ samples are in use, of [0-9.\skM]+ taken, ",
    );
    browser.click("#profile-draw");
    browser
        .wait_for_like("#profile-note", r"^[0-9.]+\s[KM]iB\. Callers are above what they call\.");
    let frames = browser.value(FRAMES).as_array().unwrap().clone();
    let has = |name: &str| frames.iter().any(|frame| frame.as_str().unwrap().contains(name));
    assert!(frames[0] == "all" && has("service::work"), "{frames:?}");
    // A click makes a frame as wide as the picture, and what is beside it goes.
    browser.value(
        "[...document.querySelectorAll('#profile-picture .frame')]
           .find(node => node.textContent.includes('service::work')).click()",
    );
    assert!(has("service::sessions"), "{frames:?}");
    browser.wait_for(&format!("!{FRAMES}.includes('service::sessions')"));
    let wide = "[...document.querySelectorAll('#profile-picture .frame')]
        .find(node => node.textContent.includes('service::work')).style.width";
    assert_eq!(browser.value(wide), "100%");
    browser.value("document.querySelector('#profile-picture .frame').click()");
    browser.wait_for(&format!("{FRAMES}.includes('service::sessions')"));

    browser.click("#profile-switch");
    browser.wait_for_text("#profile-switch", "Start");
    browser.wait_for_text("#said", "no samples are taken; those that were stay");
    assert_eq!(service.get("/ctl/prof")["active"], false);
    browser.click("#profile-switch");
    browser.wait_for_text("#profile-switch", "Stop");
    browser.click("#profile-reset");
    browser
        .wait_for_text("#said", "the samples are forgotten; one is taken in 2^14 bytes on average");
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn what_grew_between_two_moments_is_drawn_with_lines() {
    let service = Service::profiled();
    let mut browser = page_of(&service);
    show(&mut browser);
    browser.wait_for("!document.querySelector('#profile-lines').disabled");
    assert_eq!(browser.value("document.querySelector('#profile-growth').disabled"), true);
    browser.click("#profile-lines");
    browser.click("#profile-mark");
    browser.wait_for_text(
        "#said",
        "This moment is marked; \u{201c}Draw the stacks\u{201d} shows what grew since",
    );
    assert_eq!(browser.value("document.querySelector('#profile-growth').checked"), true);
    // All that was allocated grows while the service works. The estimate of a stack may fall a
    // little when those of its size classes are corrected.
    browser.value("document.querySelector('#profile-value').value = 'allocated-bytes'");
    browser.click("#profile-draw");
    browser.wait_for_like(
        "#profile-note",
        r"^Stacks that grew in [0-9.]+\s\w+: [0-9.]+\s[KMG]iB; others became smaller by [0-9.]+\s[Ki]*B\. ",
    );
    let frames = browser.value(FRAMES).as_array().unwrap().clone();
    assert_eq!(frames[0], "growth");
    let place = browser.value(
        r"[...document.querySelectorAll('#profile-picture .frame')]
            .filter(node => /^service::work.* service\.rs:\d+$/.test(node.textContent)).length",
    );
    assert!(place.as_u64().unwrap() > 0, "{frames:?}");
    browser.wait_for_like(
        "#profile-sites li",
        r"^[0-9.]+\s[KMG]iB, [0-9.]+\s%: service::\w+.* service\.rs:\d+$",
    );
    // A profile of another kind cannot be compared with the mark.
    browser.click("#profile-lines");
    let forgotten = "The mark is forgotten, because stacks have other names with lines: mark again";
    browser.wait_for_text("#said", forgotten);
    assert_eq!(browser.value("document.querySelector('#profile-growth').disabled"), true);
    // There is no mark to forget.
    browser.value("document.querySelector('#said').textContent = ''");
    browser.click("#profile-lines");
    assert_eq!(browser.text("#said"), "");
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn a_name_of_thousands_of_letters_takes_little_room() {
    let service = Service::profiled();
    let mut browser = page_of(&service);
    show(&mut browser);
    browser.wait_for("!document.querySelector('#profile-draw').disabled");
    browser.value(
        "const plain = window.fetch;
         const name = `f<${'std::vector<int>, '.repeat(2000)}>`;
         const numbers = { stacks: { [`main;${name}`]: 8 }, sites: { [name]: 8 } };
         window.fetch = (path, options) => path.startsWith('/flamegraph')
             ? Promise.resolve(new Response(JSON.stringify({ 'live-bytes': numbers })))
             : plain(path, options);
         0",
    );
    browser.click("#profile-draw");
    browser.wait_for_more("#profile-picture .frame", 2);
    let name = "document.querySelector('#profile-sites code')";
    assert!(browser.value(&format!("{name}.textContent.length")).as_u64().unwrap() > 30_000);
    let height = browser.value("document.querySelector('#profile-sites').offsetHeight");
    assert!(height.as_u64().unwrap() < 150, "{height}");
    // The whole of it can be read.
    let inner = browser.value(&format!("{name}.scrollHeight"));
    assert!(inner.as_u64().unwrap() > 1000, "{inner}");
    assert_eq!(browser.value(&format!("getComputedStyle({name}).overflowY")), "auto");
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn arrow_keys_walk_over_the_stacks() {
    let service = Service::profiled();
    let mut browser = page_of(&service);
    show(&mut browser);
    browser.wait_for("!document.querySelector('#profile-draw').disabled");
    browser.click("#profile-draw");
    browser.wait_for_more("#profile-picture .frame", 5);
    let label = "document.activeElement.getAttribute('aria-label')";
    let top = "document.activeElement.style.top";
    browser.value("document.querySelector('#profile-picture .frame').focus()");
    let root = browser.value(label);
    assert!(root.as_str().unwrap().starts_with("all, "), "{root}");
    for depth in [20, 40] {
        browser.press("ArrowDown");
        assert_eq!(browser.value(top), format!("{depth}px"));
    }
    let inner = browser.value(label);
    browser.press("ArrowUp");
    browser.press("ArrowDown");
    assert_eq!(browser.value(label), inner);
    // Back at the left end, where another step changes nothing.
    browser.press("ArrowRight");
    browser.press("ArrowLeft");
    browser.press("ArrowLeft");
    assert_eq!(browser.value(label), inner);
    let stops = "[...document.querySelectorAll('#profile-picture .frame')]
        .filter(node => node.tabIndex === 0).length";
    assert_eq!(browser.value(stops), 1);
    browser.press("Enter");
    browser.wait_for("document.activeElement.style.width === '100%'");
    assert_eq!(browser.value(label), inner);
    is_at_ease(&mut browser, &service);
}

/// The picture of `/flamegraph` and `lumalloc flamegraph`.
#[test]
#[ignore = "needs Chromium"]
fn keys_walk_over_the_picture_alone() {
    let service = Service::profiled();
    let mut browser = page_of(&service);
    let picture = format!("{}/flamegraph", service.url.trim_end_matches('/'));
    browser.open(&picture);
    let [name, level] =
        ["name", "level"].map(|data| format!("document.activeElement.getAttribute('data-{data}')"));
    browser.press("Tab");
    assert_eq!(browser.value(&name), "all");
    let outline = "getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth";
    assert_eq!(browser.value(outline), "2px");
    for expected in ["1", "2"] {
        browser.press("ArrowDown");
        assert_eq!(browser.value(&level), expected);
    }
    let inner = browser.value(&name);
    browser.press("ArrowUp");
    browser.press("ArrowDown");
    assert_eq!(browser.value(&name), inner);
    browser.press("Enter");
    let wide = "document.activeElement.querySelector('rect').getAttribute('width')";
    assert_eq!(browser.value(wide), "1179.5");
    browser.press("Escape");
    assert_ne!(browser.value(wide), "1179.5");
    // One frame is reached by Tab. Thousands with a place in that order take the browser long.
    let stops = "document.querySelectorAll('[tabindex]').length";
    assert_eq!(browser.value(stops), 1);
    assert_eq!(browser.value("document.activeElement.getAttribute('role')"), "button");
}

#[test]
#[ignore = "needs Chromium"]
fn the_heap_monitor_is_started_and_stopped() {
    let directory = std::env::temp_dir().join(format!("lumalloc-page-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let dumps = format!("dumps={}", directory.display());
    let service = Service::start(&["127.0.0.1:0", &dumps]);
    let mut browser = page_of(&service);
    browser.value("document.querySelector('#monitor').scrollIntoView()");
    browser.wait_for_like("#monitor-state", "^Records each allocation and each free to a file, ");
    browser.wait_for("document.querySelector('#monitor-stop').disabled");
    browser.value("document.querySelector('#monitor-seconds').value = 600");
    browser.value("document.querySelector('#monitor-start').focus()");
    browser.press("Enter");
    browser.wait_for_like("#said", r"^Recording for 10(\.0)?\smin$");
    // Only the other button can be used now.
    browser.wait_for("document.activeElement.id === 'monitor-stop'");
    browser.wait_for_like("#monitor-state", r"^Recording: [0-9.,\skM]+ events\. File: .*\.events$");
    browser.click("#monitor-stop");
    browser.wait_for_like("#said", r"^[0-9.,\skM]+ events are recorded$");
    browser.wait_for_like("#monitor-state", r"^The last recording has .* events\. File: ");
    let files: Vec<_> = std::fs::read_dir(&directory).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    // A recording of somebody else has another file, whose name the page does not know.
    let post =
        |path| format!("fetch('{path}', {{ method: 'POST' }}).then(answer => answer.status)");
    assert_eq!(browser.value(&post("/monitor/start?seconds=600")), 200);
    browser.wait_for_like("#monitor-state", r"^Recording: [0-9.,\skM]+ events\.$");
    assert_eq!(browser.value(&post("/monitor/stop")), 200);
    browser.wait_for_like("#monitor-state", r"^The last recording has [0-9.,\skM]+ events\.$");
    is_at_ease(&mut browser, &service);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
#[ignore = "needs Chromium"]
fn without_the_profiler_the_page_says_how_to_start_it() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    show(&mut browser);
    browser.wait_for_text(
        "#profile-state",
        "This process takes no heap profile. Start it with prof:true in LUMALLOC_CONF.",
    );
    assert_eq!(browser.value("document.querySelector('#profile-draw').disabled"), true);
    is_at_ease(&mut browser, &service);
}

/// The page asks again after an answer that there is no memory for, as a busy process gives it.
#[test]
#[ignore = "needs Chromium"]
fn a_refused_answer_does_not_end_the_section() {
    let service = Service::profiled();
    let mut browser = Browser::start();
    browser.size(1280, 800);
    browser.call(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({ "source": "const fetched = window.fetch; var refused = 0;
            window.fetch = (path, options) => !/^.ctl.(opt.)?prof$/.test(path) || refused > 2
                ? fetched(path, options)
                : (refused += 1, Promise.resolve(new Response('busy', { status: 503 })));" }),
    );
    browser.open(&service.url);
    browser.wait_for_text("#state", "Live");
    show(&mut browser);
    browser.wait_for("refused > 2");
    browser.wait_for_like("#profile-state", "^One sample in 16");
    assert_eq!(browser.value("document.querySelector('#profile-draw').disabled"), false);
    is_at_ease(&mut browser, &service);
}
