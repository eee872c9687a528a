//! The page is live: numbers change, a lost connection comes back, and no request is made in vain.

use super::chromium::Browser;
use super::service::Service;
use super::{ALLOCATED, is_at_ease, page_of};

#[test]
#[ignore = "needs Chromium"]
fn live_numbers_change_and_are_the_allocator_s() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.click("#exact");
    let first = browser.text(ALLOCATED);
    assert!(first.ends_with(" bytes"), "{first}");
    let changed =
        |text: &str| format!("document.querySelector({ALLOCATED:?}).textContent !== {text:?}");
    browser.wait_for(&changed(&first));
    let second = browser.text(ALLOCATED);
    browser.wait_for(&changed(&second));
    // The lines add up: the allocator's part and the rest are the process.
    let sums = browser.value(
        "(() => { const of = row => Number(document.querySelectorAll('#waterfall tbody tr')[row]
             .children[2].textContent.replace(/[^0-9−-]/g, '').replace('−', '-'));
           const lines = [0, 1, 2, 3, 4, 5, 6, 7].map(of).reduce((a, b) => a + b);
           return [lines, of(8), of(8) + of(9), of(10)]; })()",
    );
    assert_eq!((&sums[0], &sums[2]), (&sums[1], &sums[3]), "{sums}");
    browser.wait_for_like("#tiles .tile:last-child dd", r"per second");
    browser.wait_for("document.querySelectorAll('#memory-graph path').length === 5");
    browser.wait_for_more("#bin-table tbody tr", 20);
    let arenas = browser.value(
        "[...document.querySelectorAll('#arena-table tbody th span:first-child')]
           .map(node => node.textContent)",
    );
    let arenas: Vec<String> = serde_json::from_value(arenas).unwrap();
    let named = arenas.iter().position(|name| name == "sessions").unwrap();
    assert!(named < arenas.iter().position(|name| name == "auto_0").unwrap(), "{arenas:?}");
    let title = browser.value("document.title");
    assert!(title.as_str().unwrap().ends_with("iB · lumalloc"), "{title}");
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn a_lost_connection_shows_and_comes_back() {
    let mut service = Service::busy();
    let address = service.address().to_owned();
    let mut browser = page_of(&service);
    let last = browser.text(ALLOCATED);
    service.child.kill().unwrap();
    service.child.wait().unwrap();
    browser.wait_for_text("#state", "Connection lost");
    browser.wait_for_like("#age", r"^numbers are .* old$");
    assert_eq!(browser.value("document.body.classList.contains('stale')"), true);
    assert!(!last.is_empty() && !browser.text(ALLOCATED).is_empty(), "the last numbers stay");
    service = Service::start(&[&address]);
    browser.wait_for_text("#state", "Live");
    assert_eq!(browser.value("document.body.classList.contains('stale')"), false);
    drop(service);
}

/// The number of points of the memory graph's first line.
const POINTS: &str = "(document.querySelector('#memory-graph path').getAttribute('d')
    .match(/[ML]/g) ?? []).length";

/// Waits until the process has run for so long that another one began noticeably later.
fn wait_for_age(browser: &mut Browser) {
    browser.wait_for_like("#tiles .tile:last-child .quiet", r" in ([4-9]|[1-9][0-9]+)\ss$");
    browser.wait_for(&format!("{POINTS} > 4"));
}

#[test]
#[ignore = "needs Chromium"]
fn what_was_seen_of_a_process_is_forgotten_when_another_one_has_its_address() {
    let service = Service::profiled();
    let address = service.address().to_owned();
    let mut browser = page_of(&service);
    for _ in 0..2 {
        browser.wait_for("!document.querySelector('#map-take').disabled");
        browser.click("#map-take");
        browser.wait_for("document.querySelector('#map-take').disabled");
    }
    browser.wait_for("!document.querySelector('#map-changes').disabled");
    browser.click("#map-changes");
    browser.value("document.querySelector('#profile').scrollIntoView()");
    browser.wait_for("!document.querySelector('#profile-mark').disabled");
    browser.click("#profile-mark");
    browser.wait_for("document.querySelector('#profile-growth').checked");
    wait_for_age(&mut browser);
    service.end();
    browser.wait_for_text("#state", "Connection lost");

    let service = Service::start(&[&address]);
    let points = browser.value(&format!(
        "new Promise(done => (function look() {{
             if (document.querySelector('#state').textContent === 'Live') done({POINTS});
             else setTimeout(look, 30); }})())"
    ));
    assert_eq!(points, 1, "the graph begins anew");
    for (part, expected) in [
        ("document.querySelector('#profile-growth').checked", false),
        ("document.querySelector('#profile-growth').disabled", true),
        ("document.querySelector('#map-changes').checked", false),
        ("document.querySelector('#map-changes').disabled", true),
        ("document.querySelector('#map-shown').hidden", true),
    ] {
        assert_eq!(browser.value(part), expected, "{part}");
    }
    browser.wait_for_like("#profile-state", "^This process takes no heap profile");
    // The first map of it is compared with none.
    browser.click("#map-take");
    browser.wait_for("!document.querySelector('#map-shown').hidden");
    assert_eq!(browser.value("document.querySelector('#map-changes').disabled"), true);

    // The profile section lives again where the next process has a profile.
    wait_for_age(&mut browser);
    service.end();
    browser.wait_for_text("#state", "Connection lost");
    let service = Service::profiled_at(&address);
    browser.value("document.querySelector('#profile').scrollIntoView()");
    browser.wait_for_like("#profile-state", "^One sample in 16");
    drop(service);
}

#[test]
#[ignore = "needs Chromium"]
fn nobody_is_asked_while_nobody_looks() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    let asked = |browser: &mut Browser| browser.happened("Network.requestWillBeSent").len();
    browser.value(
        "Object.defineProperty(document, 'hidden', { value: true, configurable: true });
         document.dispatchEvent(new Event('visibilitychange'))",
    );
    // A request that was on its way arrives. Then comes a time in which two more would have come.
    let pause = "new Promise(done => setTimeout(done, 2500))";
    browser.value(pause);
    let before = asked(&mut browser);
    browser.value(pause);
    assert_eq!(asked(&mut browser), before);
    browser.value("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))");
    browser.value(pause);
    assert!(asked(&mut browser) > before);
    browser.click("#pause");
    browser.wait_for_text("#state", "Paused");
    browser.value(pause);
    let before = asked(&mut browser);
    browser.value(pause);
    assert_eq!(asked(&mut browser), before);
    browser.click("#pause");
    browser.wait_for_text("#state", "Live");
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn a_process_that_does_nothing_has_a_page_too() {
    let service = Service::start(&["127.0.0.1:0", "idle"]);
    let mut browser = page_of(&service);
    browser.wait_for_node("#found .well");
    browser.wait_for("document.querySelectorAll('#arena-table tbody tr').length >= 1");
    for link in ["/metrics", "/stats", "/ctl", "/map", "/doctor"] {
        let answer = browser.value(&format!("fetch({link:?}).then(answer => answer.status)"));
        assert_eq!(answer, 200, "{link}");
    }
    is_at_ease(&mut browser, &service);
}
