//! The page can be used by the keyboard, by ear, in the dark, and on a phone.

use super::service::Service;
use super::{is_at_ease, page_of, tab_to};
use serde_json::json;

#[test]
#[ignore = "needs Chromium"]
fn the_keyboard_reaches_everything_and_shows_where_it_is() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.value("document.querySelector('#settings').scrollIntoView()");
    browser.wait_for_more("#keys .key", 300);
    let mut reached = Vec::new();
    for _ in 0..200 {
        browser.press("Tab");
        let at = browser.value(
            "(() => { const node = document.activeElement;
               if (node === document.body) return null;
               const drawn = node.type === 'radio' ? node.nextElementSibling : node;
               const box = drawn.getBoundingClientRect();
               return { name: node.id || node.getAttribute('aria-label') || node.textContent,
                 outline: getComputedStyle(drawn).outlineStyle,
                 seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight }; })()",
        );
        if at.is_null() {
            break;
        }
        assert_ne!(at["outline"], "none", "{at}");
        assert_eq!(at["seen"], true, "{at}");
        reached.push(at["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(reached.first().map(String::as_str), Some("Skip to the numbers"));
    for name in ["pause", "exact", "theme", "Memory: moment", "purge-all", "search"] {
        assert!(reached.iter().any(|one| one == name), "{name} is not in {reached:?}");
    }
    let controls = browser.value(
        "[...document.querySelectorAll('button, input, select, a[href], summary')]
           .filter(node => node.checkVisibility() && !node.disabled && node.type !== 'radio').length",
    );
    assert!(reached.len() as u64 >= controls.as_u64().unwrap(), "{controls}: {reached:?}");
    // The cursor of a graph.
    tab_to(&mut browser, "Memory: moment");
    browser.wait_for(
        "document.querySelectorAll('#memory-graph path')[0].getAttribute('d').length > 20",
    );
    browser.press("ArrowLeft");
    browser.wait_for(
        "/ago: Process .*iB/.test(document.activeElement.getAttribute('aria-valuetext'))",
    );
    is_at_ease(&mut browser, &service);
}

/// A window of 1280 by 800 that is enlarged to 200 %.
#[test]
#[ignore = "needs Chromium"]
fn an_enlarged_page_hides_nothing_behind_its_header() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    for (width, height) in [(640, 400), (640, 800)] {
        browser.size(width, height);
        browser.value("document.querySelector('#search').focus()");
        let hidden = "(() => { const node = document.activeElement;
            const header = document.querySelector('header');
            const box = node.getBoundingClientRect();
            return getComputedStyle(header).position === 'sticky' && !header.contains(node)
                && box.top < header.getBoundingClientRect().bottom && box.bottom > 0
                ? node.id || node.textContent : null; })()";
        for _ in 0..40 {
            browser.press_back();
            assert_eq!(browser.value(hidden), json!(null), "{width} x {height}");
        }
    }
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn a_screen_reader_finds_names_for_everything() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.value("document.querySelector('#settings').scrollIntoView()");
    browser.wait_for_more("#keys .key", 300);
    browser.value("document.querySelectorAll('#keys details').forEach(node => node.open = true)");
    let tree = browser.call("Accessibility.getFullAXTree", json!({}));
    let nodes = tree["nodes"].as_array().unwrap();
    let nodes: Vec<(&str, &str)> = nodes
        .iter()
        .filter(|node| node["ignored"] == false)
        .map(|node| {
            let role = node["role"]["value"].as_str().unwrap_or_default();
            (role, node["name"]["value"].as_str().unwrap_or_default())
        })
        .collect();
    let named = [
        "button",
        "textbox",
        "searchbox",
        "spinbutton",
        "checkbox",
        "radio",
        "combobox",
        "link",
        "slider",
        "table",
        "region",
        "navigation",
        "columnheader",
        "rowheader",
        "heading",
        "meter",
    ];
    for (role, name) in &nodes {
        assert!(!named.contains(role) || !name.trim().is_empty(), "a {role} has no name");
    }
    for landmark in ["banner", "navigation", "main", "contentinfo"] {
        assert_eq!(nodes.iter().filter(|(role, _)| *role == landmark).count(), 1, "{landmark}");
    }
    for role in ["button", "spinbutton", "checkbox", "radio", "searchbox", "slider", "table"] {
        assert!(nodes.iter().any(|(one, _)| *one == role), "{role}");
    }
    let labels: Vec<&str> =
        nodes.iter().filter(|(role, _)| *role == "spinbutton").map(|(_, name)| *name).collect();
    let mut different = labels.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(labels.len(), different.len(), "fields with the same name: {labels:?}");
    let levels =
        browser.value("[...document.querySelectorAll('h1, h2, h3')].map(node => node.tagName)");
    let levels: Vec<String> = serde_json::from_value(levels).unwrap();
    assert_eq!(levels[0], "H1");
    assert!(levels[1..].iter().all(|level| level == "H2"), "{levels:?}");
    is_at_ease(&mut browser, &service);
}

/// Finds texts that stand out too little from their background.
const FAINT: &str = r"
(() => {
  // Mixed colours are color(srgb R G B) with parts up to 1.
  const parts = text => {
    const times = text.startsWith('color(srgb') ? 255 : 1;
    return text.match(/[\d.]+/g).map((part, i) => i < 3 ? times * part : Number(part));
  };
  const light = ([r, g, b]) => [r, g, b].map(part => part / 255)
    .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = node => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  let seen = 0;
  for (const node of document.body.querySelectorAll('*')) {
    const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
    if (!own || !node.getClientRects().length || node.closest('script, style, .spoken')) continue;
    const style = getComputedStyle(node);
    const colour = parts(node instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(colour), light(ground(node))].sort((a, b) => b - a);
    seen += 1;
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.push(node.tagName + ' ' + node.textContent);
  }
  return { seen, faint, ground: getComputedStyle(document.body).backgroundColor };
})()";

#[test]
#[ignore = "needs Chromium"]
fn light_and_dark_are_both_readable() {
    let service = Service::profiled();
    let mut browser = page_of(&service);
    browser.wait_for_node("#found .finding");
    browser.value("document.querySelector('#profile').scrollIntoView()");
    browser.wait_for("!document.querySelector('#profile-draw').disabled");
    browser.click("#profile-draw");
    browser.wait_for_more("#profile-picture .frame", 5);
    browser.value("document.querySelector('#settings').scrollIntoView()");
    browser.wait_for_more("#keys .key", 300);
    browser.value("document.querySelector('#keys details').open = true");
    let mut grounds = Vec::new();
    for (preferred, chosen) in [("light", ""), ("dark", ""), ("dark", "light"), ("light", "dark")] {
        browser.prefer("prefers-color-scheme", preferred);
        browser.value(&format!(
            "(select => {{ select.value = {chosen:?}; select.dispatchEvent(new Event('change')); }})
             (document.querySelector('#theme'))"
        ));
        let told = browser.value(FAINT);
        assert_eq!(told["faint"], json!([]), "{preferred}, {chosen}");
        assert!(told["seen"].as_u64().unwrap() > 200, "{told}");
        grounds.push(told["ground"].as_str().unwrap().to_owned());
    }
    assert!(grounds[0] == grounds[2] && grounds[1] == grounds[3], "{grounds:?}");
    assert_ne!(grounds[0], grounds[1]);
    // The choice of colours stays.
    browser.open(&service.url);
    browser.wait_for("document.querySelector('#theme').value === 'dark'");
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn a_phone_has_nothing_beside_its_screen() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    for (width, exact) in [(390, false), (360, false), (360, true), (320, false)] {
        browser.size(width, 740);
        browser.value(&format!(
            "(box => {{ if (box.checked !== {exact}) box.click(); }})
             (document.querySelector('#exact'))"
        ));
        browser.value("document.querySelector('#settings').scrollIntoView()");
        browser.wait_for_more("#keys .key", 300);
        browser
            .value("document.querySelectorAll('#keys details').forEach(node => node.open = true)");
        let wide = browser.value(
            "[document.documentElement.scrollWidth, innerWidth,
              ...[...document.querySelectorAll('main *')]
                .filter(node => !node.closest('.scroll, .spoken'))
                .filter(node => node.getBoundingClientRect().right > innerWidth + 1)
                .map(node => `${node.tagName} ${node.textContent.slice(0, 40)}`)]",
        );
        assert_eq!(wide, json!([width, width]), "{width}");
        // Controls must be high enough for fingers.
        let small = browser.value(
            "[...document.querySelectorAll('button, select, input:not([type=radio])')]
               .filter(node => node.checkVisibility())
               .filter(node => (node.closest('label') ?? node).getBoundingClientRect().height < 24)
               .map(node => node.id || node.textContent)",
        );
        assert_eq!(small, json!([]), "{width}");
    }
    is_at_ease(&mut browser, &service);
}
