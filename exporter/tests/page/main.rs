//! The page at `/` in a browser, from a service at work: `examples/service.rs`.
//!
//! ```text
//! cargo test -p lumalloc-exporter --test page -- --ignored
//! ```
mod access;
mod chromium;
mod doing;
mod life;
mod map;
mod profile;
mod service;

use chromium::Browser;
use service::Service;

/// Opens the page of a service, and waits until it is live.
fn page_of(service: &Service) -> Browser {
    let mut browser = Browser::start();
    browser.size(1280, 800);
    browser.open(&service.url);
    browser.wait_for_text("#state", "Live");
    browser
}

/// Checks that nothing went wrong in the browser, and that no other server was asked.
#[track_caller]
fn is_at_ease(browser: &mut Browser, service: &Service) {
    for method in ["Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"] {
        let happened = browser.happened(method);
        assert!(happened.is_empty(), "{method}: {happened:#?}");
    }
    let requests = browser.happened("Network.requestWillBeSent");
    assert!(requests.len() > 1);
    for request in requests {
        let url = request["request"]["url"].as_str().unwrap();
        assert!(url.starts_with(&service.url) || url.starts_with("data:"), "{url}");
    }
}

/// The cell with the bytes in blocks.
const ALLOCATED: &str = "#waterfall tbody tr:first-child td:nth-child(3)";

/// Presses Tab until the element with a label has the focus.
#[track_caller]
fn tab_to(browser: &mut Browser, label: &str) {
    for _ in 0..200 {
        browser.press("Tab");
        if browser.value("document.activeElement.getAttribute('aria-label')") == label {
            return;
        }
    }
    panic!("the focus never came to {label:?}");
}
