//! The page at `/` in a browser, of a service at work: `examples/service.rs`.
//!
//! ```text
//! cargo test -p lumalloc-exporter --test page -- --ignored
//! ```
mod chromium;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use chromium::Browser;
use serde_json::{Value, json};

/// The example in a process of its own.
struct Service {
    child: Child,
    /// `http://127.0.0.1:PORT/`
    url: String,
}

impl Service {
    fn start(arguments: &[&str]) -> Service {
        let mut child =
            Command::new(example()).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{url:?}");
        Service { child, url }
    }

    fn busy() -> Service {
        Service::start(&["127.0.0.1:0"])
    }

    fn address(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches('/')
    }

    /// Asks past the page.
    fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let host = self.address();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }

    /// The index of an arena with a name.
    fn arena(&self, name: &str) -> String {
        let all = self.get("/stats?format=json&opts=gble");
        let all = all["jemalloc"]["stats.arenas"].as_object().unwrap().clone();
        all.into_iter().find(|(_, arena)| arena["name"] == name).unwrap().0
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the example, as these tests were built.
fn example() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let this = std::env::current_exe().unwrap();
        let profile = this.parent().unwrap().parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "-p", "lumalloc-exporter", "--example", "service"]);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success());
        profile.join("examples/service")
    })
}

/// The page of a service, once it is alive.
fn page_of(service: &Service) -> Browser {
    let mut browser = Browser::start();
    browser.size(1280, 800);
    browser.open(&service.url);
    browser.wait_for("document.querySelector('#state').textContent === 'Live'");
    browser
}

/// Nothing went wrong in the browser, and nobody else was asked.
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

const ALLOCATED: &str = "#waterfall tbody tr:first-child td:nth-child(3)";

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
    // Lines that add up: what is ours and what is not is the process.
    let sums = browser.value(
        "(() => { const of = row => Number(document.querySelectorAll('#waterfall tbody tr')[row]
             .children[2].textContent.replace(/[^0-9−-]/g, '').replace('−', '-'));
           const lines = [0, 1, 2, 3, 4, 5, 6, 7].map(of).reduce((a, b) => a + b);
           return [lines, of(8), of(8) + of(9), of(10)]; })()",
    );
    assert_eq!((&sums[0], &sums[2]), (&sums[1], &sums[3]), "{sums}");
    browser.wait_for(
        "/per second/.test(document.querySelector('#tiles .tile:last-child dd').textContent)",
    );
    browser.wait_for("document.querySelectorAll('#memory-graph path').length === 5");
    browser.wait_for("document.querySelectorAll('#bin-table tbody tr').length > 20");
    let arenas = browser.value(
        "[...document.querySelectorAll('#arena-table tbody th span:first-child')].map(n => n.textContent)",
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
fn an_arena_is_purged_and_a_finding_goes_away() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    let import = service.arena("import");
    let dirty = |service: &Service| {
        let name = format!("/ctl/stats.arenas.{import}.pdirty");
        service.get(&name)["value"].as_u64().unwrap()
    };
    assert!(dirty(&service) > 10_000);
    browser.wait_for("document.querySelector('#found .finding strong')");
    let finding = browser.text("#found .finding strong");
    assert!(finding.contains("of unused pages still have memory"), "{finding}");
    browser.click("[aria-label='Purge import']");
    browser.wait_for("/^Purged import: unused pages .* MiB → 0 B\\.$/.test(document.querySelector('#said').textContent)");
    assert_eq!(dirty(&service), 0);
    browser.wait_for("document.querySelector('#found .well')");
    assert_eq!(browser.text("#found .well"), "✓ Nothing stands out.");
    browser.click("#purge-all");
    browser.wait_for("/^Purged all arenas: /.test(document.querySelector('#said').textContent)");
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn the_button_of_a_finding_does_what_helps() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.wait_for("document.querySelector('#found .finding button')");
    let last = "#found .finding button:last-child";
    assert_eq!(browser.text(last), "arena.4096.purge");
    browser.click(last);
    browser.wait_for("document.querySelector('#said').textContent === 'arena.4096.purge: done.'");
    browser.wait_for("document.querySelector('#found .well')");
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
    // A snapshot that arrives meanwhile leaves alone what is being typed.
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
    // What new arenas begin with.
    tab_to(&mut browser, "Muzzy decay of New arenas, in milliseconds");
    browser.press("Backspace");
    browser.enter("700");
    browser.press("Enter");
    browser
        .wait_for("document.querySelector('#said').textContent === 'arenas.muzzy_decay_ms = 700'");
    assert_eq!(service.get("/ctl/arenas.muzzy_decay_ms")["value"], 700);
    is_at_ease(&mut browser, &service);
}

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

#[test]
#[ignore = "needs Chromium"]
fn the_keyboard_reaches_everything_and_shows_where_it_is() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.value("document.querySelector('#settings').scrollIntoView()");
    browser.wait_for("document.querySelectorAll('#keys .key').length > 300");
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
           .filter(node => node.checkVisibility() && node.type !== 'radio').length",
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

#[test]
#[ignore = "needs Chromium"]
fn a_screen_reader_finds_names_for_everything() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.value("document.querySelector('#settings').scrollIntoView()");
    browser.wait_for("document.querySelectorAll('#keys .key').length > 300");
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

/// Texts that stand out too little from what they stand on.
const FAINT: &str = r"
(() => {
  const parts = text => text.match(/[\d.]+/g).map(Number);
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
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.push(`${node.tagName} ${node.textContent} ${style.color}`);
  }
  return { seen, faint, ground: getComputedStyle(document.body).backgroundColor };
})()";

#[test]
#[ignore = "needs Chromium"]
fn light_and_dark_are_both_readable() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.wait_for("document.querySelector('#found .finding')");
    browser.value("document.querySelector('#settings').scrollIntoView()");
    browser.wait_for("document.querySelectorAll('#keys .key').length > 300");
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
    // The choice stays.
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
            "document.querySelector('#exact').checked !== {exact} && document.querySelector('#exact').click()"
        ));
        browser.value("document.querySelector('#settings').scrollIntoView()");
        browser.wait_for("document.querySelectorAll('#keys .key').length > 300");
        browser
            .value("document.querySelectorAll('#keys details').forEach(node => node.open = true)");
        let wide = browser.value(
            "[document.documentElement.scrollWidth, innerWidth,
              ...[...document.querySelectorAll('main *')].filter(node => !node.closest('.scroll, .spoken')
                && node.getBoundingClientRect().right > innerWidth + 1)
                .map(node => `${node.tagName} ${node.className} ${node.textContent.slice(0, 40)}`)]",
        );
        assert_eq!(wide, json!([width, width]), "{width}");
        // Fingers need room.
        let small = browser.value(
            "[...document.querySelectorAll('button, select, input:not([type=radio])')]
               .filter(node => node.offsetParent)
               .filter(node => (node.closest('label') ?? node).getBoundingClientRect().height < 20)
               .map(node => node.id || node.textContent)",
        );
        assert_eq!(small, json!([]), "{width}");
    }
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
    browser.wait_for("document.querySelector('#state').textContent === 'Connection lost'");
    browser.wait_for("/^numbers are .* old$/.test(document.querySelector('#age').textContent)");
    assert_eq!(browser.value("document.body.classList.contains('stale')"), true);
    assert!(!last.is_empty() && !browser.text(ALLOCATED).is_empty(), "the last numbers stay");
    service = Service::start(&[&address]);
    browser.wait_for("document.querySelector('#state').textContent === 'Live'");
    assert_eq!(browser.value("document.body.classList.contains('stale')"), false);
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
    // One that was on its way arrives; then a time in which two more would have come.
    let pause = "new Promise(done => setTimeout(done, 2500))";
    browser.value(pause);
    let before = asked(&mut browser);
    browser.value(pause);
    assert_eq!(asked(&mut browser), before);
    browser.value("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))");
    browser.value(pause);
    assert!(asked(&mut browser) > before);
    browser.click("#pause");
    browser.wait_for("document.querySelector('#state').textContent === 'Paused'");
    browser.value(pause);
    let before = asked(&mut browser);
    browser.value(pause);
    assert_eq!(asked(&mut browser), before);
    browser.click("#pause");
    browser.wait_for("document.querySelector('#state').textContent === 'Live'");
    is_at_ease(&mut browser, &service);
}

#[test]
#[ignore = "needs Chromium"]
fn every_key_is_found_read_and_set() {
    let service = Service::busy();
    let mut browser = page_of(&service);
    browser.value("document.querySelector('#settings').scrollIntoView()");
    let keys = service.get("/ctl").as_array().unwrap().len();
    browser.wait_for(&format!("document.querySelectorAll('#keys .key').length === {keys}"));
    browser.click("#search");
    browser.enter("limit.soft");
    browser.wait_for("document.querySelectorAll('#keys .key:not([hidden])').length === 1");
    assert_eq!(browser.text("#settings-note"), format!("1 of {keys} keys"));
    browser.wait_for(
        "document.querySelector('#keys .key:not([hidden]) .value').textContent === '0 bytes'",
    );
    let about = browser.text("#keys .key:not([hidden]) p");
    assert!(
        about.contains("purges unused pages") && about.ends_with("size_t · bytes · rw"),
        "{about}"
    );
    browser.click("[aria-label='New value of limit.soft']");
    browser.enter("8589934592");
    browser.press("Enter");
    browser.wait_for("document.querySelector('#said').textContent === 'limit.soft = 8589934592'");
    assert_eq!(service.get("/ctl/limit.soft")["value"], 8_589_934_592_u64);
    browser.wait_for("document.querySelector('meter') && /of limit.soft, 8 GiB/.test(document.querySelector('#tiles').textContent)");
    is_at_ease(&mut browser, &service);
    // Refused: the reason is the exporter's own.
    browser.click("[aria-label='New value of limit.soft']");
    browser.enter("-5");
    browser.press("Enter");
    browser.wait_for("document.querySelector('#said').textContent === 'limit.soft: -5 is not fit; its type is size_t, its unit bytes'");
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
    browser.wait_for(
        "document.querySelector('#state').textContent === 'Refused: this is not the token'",
    );
    browser.wait_for("!document.querySelector('#token').hidden");
    browser.enter("open-sesame-open-sesame");
    browser.press("Enter");
    browser.wait_for("document.querySelector('#state').textContent === 'Live'");
    browser.click("[aria-label='Purge import']");
    browser.wait_for("/^Purged import/.test(document.querySelector('#said').textContent)");
    let kept = browser.value("JSON.stringify([localStorage, sessionStorage, document.cookie])");
    assert!(!kept.as_str().unwrap().contains("sesame"), "{kept}");
    let _ = std::fs::remove_file(file);
}

#[test]
#[ignore = "needs Chromium"]
fn a_process_that_does_nothing_has_a_page_too() {
    let service = Service::start(&["127.0.0.1:0", "idle"]);
    let mut browser = page_of(&service);
    browser.wait_for("document.querySelector('#found .well')");
    browser.wait_for("document.querySelectorAll('#arena-table tbody tr').length >= 1");
    for link in ["/stats", "/ctl", "/doctor"] {
        let answer = browser.value(&format!("fetch({link:?}).then(answer => answer.status)"));
        assert_eq!(answer, 200, "{link}");
    }
    is_at_ease(&mut browser, &service);
}
