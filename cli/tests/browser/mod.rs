//! A headless Chromium, driven by its DevTools protocol over a pair of pipes: JSON texts that end in a zero byte.
//! No network, no library: only what the tests need.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// Names that distributions give it.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: u64,
    session: String,
    events: VecDeque<Value>,
    _profile: TempDir,
}

impl Browser {
    /// `None`, with a line that says why, where there is no Chromium; REQUIRE_CHROMIUM=1 makes that a failure.
    pub fn start() -> Option<Self> {
        let found = NAMES.iter().find(|name| {
            let asked =
                Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            asked.is_ok_and(|status| status.success())
        });
        let Some(name) = found else {
            assert!(
                std::env::var("REQUIRE_CHROMIUM").as_deref() != Ok("1"),
                "Chromium is required: install chromium"
            );
            println!("SKIP: no Chromium; install chromium, or set REQUIRE_CHROMIUM=1 to fail");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // The protocol's pipes are descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null; exec \"$@\"", "sh", name])
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args(["--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut browser = Self {
            child,
            to,
            from,
            next: 0,
            session: String::new(),
            events: VecDeque::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        browser.session =
            browser.call("Target.attachToTarget", attach)["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.prefer("light");
        Some(browser)
    }

    /// Calls a method of the protocol; events that come before its answer are kept.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.receive();
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push_back(answer);
        }
    }

    fn receive(&mut self) -> Value {
        let mut message = Vec::new();
        self.from.read_until(0, &mut message).unwrap();
        message.pop().expect("the browser is gone");
        serde_json::from_slice(&message).unwrap()
    }

    /// Opens a file and waits until it has been loaded. `query` is put behind a question mark.
    pub fn open(&mut self, path: &Path, query: &str) {
        self.events.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}?{query}", path.display())}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive();
            self.events.push_back(event);
        }
    }

    /// What has gone wrong since the page was opened: errors on the console, exceptions, requests to a network.
    pub fn complaints(&mut self) -> Vec<String> {
        self.eval("0");
        let is_complaint = |event: &&Value| match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => {
                ["error", "warning"].contains(&event["params"]["type"].as_str().unwrap())
            }
            "Log.entryAdded" => {
                ["error", "warning"].contains(&event["params"]["entry"]["level"].as_str().unwrap())
            }
            "Network.requestWillBeSent" => {
                let url = event["params"]["request"]["url"].as_str().unwrap();
                !url.starts_with("file://") && !url.starts_with("data:")
            }
            _ => false,
        };
        self.events.iter().filter(is_complaint).map(|event| event["params"].to_string()).collect()
    }

    /// The value of an expression.
    pub fn eval(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The text of the first element that a selector finds.
    pub fn text(&mut self, selector: &str) -> String {
        self.eval(&format!("document.querySelector({selector:?}).innerText")).as_str().unwrap().to_owned()
    }

    /// Presses and releases a key, as a keyboard does.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            "Tab" => 9,
            _ => 0,
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if key == "Enter" && kind == "keyDown" {
                event["text"] = "\r".into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Moves the mouse to the middle of an element and clicks.
    pub fn click(&mut self, selector: &str) {
        let place = self.eval(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center', behavior: 'instant'}});
               const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
        ));
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let event =
                json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// The size of the screen, in CSS pixels.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// What the system says about light and dark; and that nothing should move by itself, for a click would miss it.
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!({"features": [
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]});
        self.call("Emulation.setEmulatedMedia", features);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The shell has become the browser, so this is the browser itself, whose helpers follow.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
