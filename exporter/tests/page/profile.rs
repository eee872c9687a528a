//! The heap profile: its state, the switch, and the stacks as a picture.

use super::service::Service;
use super::{is_at_ease, page_of};

/// The names of the frames that are drawn.
const FRAMES: &str =
    "[...document.querySelectorAll('#profile-picture .frame')].map(node => node.textContent)";

fn show(browser: &mut super::chromium::Browser) {
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
    browser.wait_for(&format!("{FRAMES}.length < {}", frames.len()));
    let wide = "[...document.querySelectorAll('#profile-picture .frame')]
        .find(node => node.textContent.includes('service::work')).style.width";
    assert_eq!(browser.value(wide), "100%");
    browser.value("document.querySelector('#profile-picture .frame').click()");
    browser.wait_for(&format!("{FRAMES}.length >= {}", frames.len()));

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
