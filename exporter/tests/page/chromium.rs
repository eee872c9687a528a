//! A browser without a window. It is driven by the DevTools protocol over two pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// The longest time that anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one tab.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    profile: PathBuf,
    session: Option<String>,
    calls: u64,
    /// The events so far: requests, errors, messages.
    events: Vec<Value>,
}

impl Browser {
    /// Starts Chromium, whose descriptors 3 and 4 are the pipes.
    pub(crate) fn start() -> Browser {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lumalloc-page-{}-{count}", std::process::id());
        let profile = std::env::temp_dir().join(name);
        let mut child = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null", "sh"])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromium starts");
        let to = child.stdin.take().unwrap();
        let from = messages(BufReader::new(child.stdout.take().unwrap()));
        let mut browser =
            Browser { child, to, from, profile, session: None, calls: 0, events: Vec::new() };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", target);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method of the protocol.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser listens");
        loop {
            let answer = self.from.recv_timeout(PATIENCE).expect("the browser answers");
            if answer["id"] == self.calls {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    /// Returns the value of an expression. If it is a promise, waits for its value.
    #[track_caller]
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
        });
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Returns the text of the first element that a selector finds.
    #[track_caller]
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let text = self.value(&format!("document.querySelector({selector:?}).textContent"));
        text.as_str().unwrap().to_owned()
    }

    /// Waits until a condition holds. It is checked again and again inside the page.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, condition: &str) {
        let limit = PATIENCE.as_millis() / 2;
        let held = self.value(&format!(
            "new Promise(done => {{ const begin = performance.now(); (function look() {{
               if ({condition}) done(true);
               else if (performance.now() - begin > {limit}) done(false);
               else setTimeout(look, 30); }})(); }})"
        ));
        if held != true {
            let text = self.value("document.body.innerText");
            panic!("never so: {condition}\n{}", text.as_str().unwrap_or_default());
        }
    }

    /// Waits until an element has a text.
    #[track_caller]
    pub(crate) fn wait_for_text(&mut self, selector: &str, text: &str) {
        self.wait_for(&format!("document.querySelector({selector:?})?.textContent === {text:?}"));
    }

    /// Waits until the text of an element matches a regular expression.
    #[track_caller]
    pub(crate) fn wait_for_like(&mut self, selector: &str, like: &str) {
        let text = format!("document.querySelector({selector:?})?.textContent");
        self.wait_for(&format!("/{like}/u.test({text})"));
    }

    /// Waits until an element exists.
    #[track_caller]
    pub(crate) fn wait_for_node(&mut self, selector: &str) {
        self.wait_for(&format!("document.querySelector({selector:?})"));
    }

    /// Waits until a selector finds more than so many elements.
    #[track_caller]
    pub(crate) fn wait_for_more(&mut self, selector: &str, count: usize) {
        self.wait_for(&format!("document.querySelectorAll({selector:?}).length > {count}"));
    }

    /// Opens a page.
    #[track_caller]
    pub(crate) fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
        self.wait_for("document.readyState === 'complete'");
    }

    /// Sets the size of the window.
    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Sets a preference of the system.
    pub(crate) fn prefer(&mut self, feature: &str, value: &str) {
        let features = json!({ "features": [{ "name": feature, "value": value }] });
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// Clicks in the middle of the first element that a selector finds, as a mouse does.
    #[track_caller]
    pub(crate) fn click(&mut self, selector: &str) {
        let place = self.value(&format!(
            "(node => {{ node.scrollIntoView({{ block: 'center', behavior: 'instant' }});
               const box = node.getBoundingClientRect();
               return {{ x: box.x + box.width / 2, y: box.y + box.height / 2 }}; }})
             (document.querySelector({selector:?}))"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": place["x"], "y": place["y"], "button": "left", "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Presses a key: `Tab`, `Enter`, `ArrowLeft`, `a`.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Backspace" => 8,
            "Tab" => 9,
            "Enter" => 13,
            " " => 32,
            "ArrowLeft" => 37,
            "-" => 189,
            "." => 190,
            other => u32::from(other.to_ascii_uppercase().as_bytes()[0]),
        };
        let text = match key {
            "Enter" => "\r",
            one if one.len() == 1 => one,
            _ => "",
        };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        let mut event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
        if !text.is_empty() {
            event["text"] = text.into();
        }
        self.call("Input.dispatchKeyEvent", event.clone());
        event["type"] = "keyUp".into();
        self.call("Input.dispatchKeyEvent", event);
    }

    /// Presses Tab with the shift key.
    pub(crate) fn press_back(&mut self) {
        for kind in ["rawKeyDown", "keyUp"] {
            let event = json!({
                "type": kind, "key": "Tab", "windowsVirtualKeyCode": 9, "modifiers": 8,
            });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Types a text.
    pub(crate) fn enter(&mut self, text: &str) {
        text.chars().for_each(|letter| self.press(letter.to_string().as_str()));
    }

    /// Returns all events of one kind so far.
    pub(crate) fn happened(&mut self, method: &str) -> Vec<Value> {
        self.value("0");
        let all = self.events.iter().filter(|event| event["method"] == method);
        all.map(|event| event["params"].clone()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // All processes of the browser end when the pipes do.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

/// Returns the messages that come through a pipe.
fn messages(mut from: BufReader<std::process::ChildStdout>) -> Receiver<Value> {
    let (give, take) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        while from.read_until(0, &mut bytes).is_ok_and(|length| length > 0) {
            bytes.pop();
            let Ok(message) = serde_json::from_slice(&bytes) else { return };
            if give.send(message).is_err() {
                return;
            }
            bytes.clear();
        }
    });
    take
}
