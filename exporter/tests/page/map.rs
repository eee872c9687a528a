//! The heap map: a picture that is taken when asked for, details, and what changed.

use super::service::Service;
use super::{Browser, is_at_ease, page_of};
use serde_json::Value;

/// The number of pixels of the picture that are not transparent, in thousandths.
const DRAWN: &str = "(() => {
    const { width, height } = document.querySelector('#map-picture');
    const brush = document.querySelector('#map-picture').getContext('2d');
    const pixels = brush.getImageData(0, 0, width, height).data;
    let drawn = 0;
    for (let i = 3; i < pixels.length; i += 4) drawn += pixels[i] > 0;
    return Math.round(drawn * 1000 / (width * height));
})()";

/// The page, with a map that was taken.
fn map_of(service: &Service) -> Browser {
    let mut browser = page_of(service);
    browser.click("#map-take");
    browser.wait_for_like("#map-note", "^A cell is ");
    browser
}

#[test]
#[ignore = "needs Chromium"]
fn a_map_is_taken_looked_into_and_compared() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.click("#map-take");
    browser.wait_for_like("#map-note", r"^A cell is [0-9.]+ [KM]iB\. [0-9.k ]+ runs\. ");
    assert!(browser.value(DRAWN).as_u64().unwrap() > 200);
    let legend = browser.text("#map-legend");
    for state in ["slab ", "large ", "dirty ", "retained ", "metadata "] {
        assert!(legend.contains(state), "{legend}");
    }
    // The arrow keys choose a cell, and the details follow.
    browser.value("document.querySelector('#map-picture').focus()");
    browser.press("ArrowRight");
    browser.wait_for_like("#map-title", "^0x[0-9a-f]+$");
    let first = browser.text("#map-title");
    browser.press("ArrowRight");
    browser.wait_for(&format!("document.querySelector('#map-title').textContent !== '{first}'"));
    let facts = browser.text("#map-facts");
    assert!(facts.contains("A purge gives back"), "{facts}");
    // A large block of the service, by its address. The service may free it meanwhile.
    let is_found = (0..50).any(|_| {
        let runs = service.get("/map")["runs"].as_array().unwrap().clone();
        let large = runs.iter().find(|run| run["state"] == "large").unwrap();
        let base = large["base"].as_str().unwrap();
        browser.value("document.querySelector('#map-address').value = ''");
        browser.click("#map-address");
        browser.enter(base);
        browser.press("Enter");
        browser.wait_for_text("#map-title", base);
        browser.text("#map-facts").starts_with("Statelarge: large blocks")
    });
    assert!(is_found);
    assert_eq!(browser.value("document.querySelector('#map-changes').disabled"), true);
    browser.click("#map-take");
    browser.wait_for("!document.querySelector('#map-changes').disabled");
    browser.click("#map-changes");
    browser.wait_for_like("#map-legend", "in use as before");
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn a_click_tells_the_cell_under_the_mouse() {
    let service = Service::busy();
    let mut browser = map_of(&service);
    // The first cell, whose address is that of the first run that is drawn, or a little below.
    let place = "document.querySelector('#map-picture').getBoundingClientRect()";
    browser.value(&format!(
        "document.querySelector('#map-picture').scrollIntoView();
         document.querySelector('#map-picture').dispatchEvent(new MouseEvent('click', {{
            bubbles: true, clientX: {place}.x + 4, clientY: {place}.y + 4 }}))"
    ));
    browser.wait_for_like("#map-title", "^0x[0-9a-f]+$");
    let title = browser.text("#map-title");
    let at: Value = service.get(&format!("/map?at={title}"));
    let facts = browser.text("#map-facts");
    match at["run"]["base"].as_str() {
        Some(base) => assert!(facts.contains(&format!(" from {base}")), "{facts} {at}"),
        None => assert_eq!(facts, "No run is here."),
    }
    is_at_ease(&mut browser, &service);
}

/// The answer about an earlier cell comes last.
#[test]
#[ignore = "needs Chromium"]
fn the_cell_that_was_chosen_last_is_told() {
    let service = Service::busy();
    let mut browser = map_of(&service);
    browser.value(
        "const plain = window.fetch;
         var begun = 0, ended = 0;
         window.fetch = (path, options) => {
             if (!path.startsWith('/map?at=')) return plain(path, options);
             begun += 1;
             const late = begun === 1 ? new Promise(after => setTimeout(after, 1500)) : null;
             return Promise.resolve(late).then(() => plain(path, options))
                 .finally(() => { ended += 1; });
         };
         document.querySelector('#map-picture').focus()",
    );
    for _ in 0..4 {
        browser.press("ArrowRight");
    }
    browser.wait_for("ended > 1 && ended === begun");
    let cell = browser.text("#map-note");
    let [size, unit] = [3, 4].map(|word| cell.split([' ', '\u{a0}']).nth(word).unwrap());
    let unit = if unit.starts_with("KiB") { 1 << 10 } else { 1 << 20 };
    let cell = (size.parse::<f64>().unwrap() * f64::from(unit)) as u64;
    let first = "Math.min(...performance.getEntriesByType('resource').map(it => it.name)
        .filter(it => it.includes('/map?at=')).map(it => Number(it.split('at=')[1])))";
    let first = browser.value(first).as_u64().unwrap();
    browser.wait_for_text("#map-title", &format!("0x{:x}", first + 3 * cell));
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn the_sites_of_a_cell_are_named_by_their_innermost_function() {
    let service = Service::busy();
    let mut browser = map_of(&service);
    browser.value(
        "const plain = window.fetch;
         const site = symbol => ({ objects: 2, requested: 128, oldest_ms: 5, stack: [
             { address: '0x10', module: '/usr/bin/server', offset: '0x2a', symbol }] });
         const sites = [site('parse_config'), site(null)];
         const found = JSON.stringify({ run: null, sites, others: { objects: 0 } });
         window.fetch = (path, options) => path.startsWith('/map?at=')
             ? Promise.resolve(new Response(found)) : plain(path, options);
         document.querySelector('#map-picture').focus()",
    );
    browser.press("ArrowRight");
    browser.wait_for_like("#map-sites summary", "^parse_config: 2 sampled blocks, ");
    browser.wait_for_like("#map-sites li + li > details > summary", "^server\\+0x2a: 2 sampled ");
    is_at_ease(&mut browser, &service);
}

/// As many runs as are asked for at most. So many cannot be arguments of one call.
#[test]
#[ignore = "needs Chromium"]
fn a_map_of_very_many_runs_is_drawn() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.value(
        "const plain = window.fetch;
         const run = (_, i) => ({ base: `0x${(65536 + 4096 * i).toString(16)}`, bytes: 4096,
             state: 'large', used: 1, blocks: 1, block: 4096, purgeable: 0,
             oldest_ms: i === 7 ? 60000 : null });
         const runs = Array.from({ length: 200000 }, run);
         window.fetch = (path, options) => path.startsWith('/map?most=')
             ? Promise.resolve(new Response(JSON.stringify({ page: 4096, next: null, runs })))
             : plain(path, options);
         0",
    );
    browser.click("#map-take");
    browser.wait_for_like(
        "#map-note",
        r"^A cell is [0-9.]+ [KM]iB\. 200 k runs\. .* The oldest sample in use is 60\ss old\.$",
    );
    assert!(browser.value(DRAWN).as_u64().unwrap() > 200);
    is_at_ease(&mut browser, &service);
}
