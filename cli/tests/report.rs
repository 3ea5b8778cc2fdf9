//! `thermalloc report` as a whole: the page in a browser, planted heat, bad input.

mod browser;
mod common;

use browser::Browser;
use common::{PROGRAM, Sandbox, lines, run};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn report(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    run(Command::new(PROGRAM).arg("report").args(arguments).current_dir(sandbox.root()))
}

/// Makes a page of some reports; returns its path.
fn page(sandbox: &Sandbox, paths: &[PathBuf]) -> PathBuf {
    let names: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    let output = report(sandbox, &[&names[..], &["-o", "page.html"]].concat());
    assert!(output.status.success(), "{output:?}");
    sandbox.path("page.html")
}

/// The data that a page carries.
fn data(page: &Path) -> Value {
    let html = fs::read_to_string(page).unwrap();
    let (_, rest) = html.split_once("id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

const PARTS: [&str; 7] = ["overview", "heatmap", "placement", "flame", "sites", "classes", "objects"];

#[test]
fn pages_of_real_programs_load_and_answer() {
    let Some(mut browser) = Browser::start() else { return };
    let sandbox = Sandbox::new();
    for name in ["sqlite3", "python3", "memcached", "redis", "service"] {
        let page = page(&sandbox, &[fixture(&format!("{name}.json"))]);
        for (width, scheme) in [(1280, "light"), (1280, "dark"), (390, "light")] {
            browser.resize(width, 900);
            browser.prefer(scheme);
            browser.open(&page, "");
            assert_eq!(browser.complaints(), [""; 0], "{name}");
            for part in PARTS {
                assert!(browser.text(&format!("#{part}")).len() > 30, "{name}: {part} is empty");
            }
            assert_eq!(browser.eval("colour.theme()"), scheme);
            // Wide tables scroll within their part; the page itself never sideways.
            assert_eq!(
                browser.eval("document.documentElement.scrollWidth <= window.innerWidth"),
                true,
                "{name} {width}"
            );
            assert!(
                !browser.text("main").contains("undefined") && !browser.text("main").contains("NaN"),
                "{name}"
            );
        }
        heat_map_answers(&mut browser);
        flame_graph_answers(&mut browser);
        tables_answer(&mut browser);
        assert_eq!(browser.complaints(), [""; 0], "{name}");
    }
}

/// How many colours a canvas shows.
fn colours(browser: &mut Browser, canvas: &str) -> u64 {
    let script = format!(
        "(() => {{ const c = document.querySelector({canvas:?}), copy = document.createElement('canvas');
           [copy.width, copy.height] = [c.width, c.height];
           const context = copy.getContext('2d', {{willReadFrequently: true}});
           context.drawImage(c, 0, 0);
           const d = context.getImageData(0, 0, c.width, c.height).data, seen = new Set();
           for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
           return seen.size; }})()"
    );
    browser.eval(&script).as_u64().unwrap()
}

fn heat_map_answers(browser: &mut Browser) {
    for view in ["class", "address", "site"] {
        browser.click(&format!("#heatmap button[data-value={view}]"));
        assert!(colours(browser, "#heatmap canvas") > 3, "{view}");
    }
    browser.eval("document.querySelector('#heatmap canvas').focus()");
    browser.press("ArrowDown");
    assert!(browser.text("#tip").contains("accesses per byte and second"));
    let first = browser.text("#heatmap .unseen");
    browser.press("ArrowUp");
    assert_ne!(browser.text("#heatmap .unseen"), first);
    browser.press("Enter");
    assert!(browser.text("#heatmap .panel").contains("Hottest"));
    browser.click("#heatmap .panel button");
    assert_eq!(browser.eval("document.querySelectorAll('#sites tr.open').length"), 1);
    browser.press("Enter");
    assert_eq!(browser.eval("document.querySelectorAll('#sites tr.open').length"), 0);
}

fn flame_graph_answers(browser: &mut Browser) {
    for weight in ["bytes", "heat", "accesses"] {
        browser.click(&format!("#flame button[data-value={weight}]"));
        assert!(colours(browser, "#flame canvas") > 3, "{weight}");
    }
    browser.eval("document.querySelector('#flame canvas').focus()");
    browser.press("ArrowDown");
    let name = browser.text("#tip strong");
    browser.press("Enter");
    assert_eq!(browser.eval("document.querySelector('#flame .controls > button').disabled"), false);
    browser.press("Escape");
    assert_eq!(browser.eval("document.querySelector('#flame .controls > button').disabled"), true);
    browser.eval(&format!(
        "(() => {{ const i = document.querySelector('#flame input'); i.value = {name:?}; i.dispatchEvent(new Event('input')); }})()"
    ));
    assert!(browser.text("#flame .controls").contains("of accesses"));
}

fn tables_answer(browser: &mut Browser) {
    let first = |browser: &mut Browser| browser.text("#sites tbody tr td:nth-child(6)");
    browser.click("#sites thead th:nth-child(6) button");
    let most = first(browser);
    assert_eq!(browser.eval("document.querySelectorAll('#sites thead th')[5].ariaSort"), "descending");
    browser.click("#sites thead th:nth-child(6) button");
    assert_ne!(first(browser), most, "writes sort both ways");
    browser.click("#objects tbody tr button.open");
    assert!(browser.text("#objects tr.details").contains("First access"));
    assert!(browser.eval("document.querySelectorAll('#objects tr.details rect').length").as_u64() > Some(2));
    let before = browser.eval("colour.theme()");
    browser.click("#theme");
    assert_ne!(browser.eval("colour.theme()"), before);
}

#[test]
fn several_processes_are_chosen_from() {
    let Some(mut browser) = Browser::start() else { return };
    let sandbox = Sandbox::new();
    let page = page(&sandbox, &[fixture("sqlite3.json"), fixture("redis.json")]);
    browser.open(&page, "theme=dark");
    assert!(browser.text("h1").contains("sqlite3"));
    browser.click("#overview .table tbody button.link:not([aria-current])");
    assert!(browser.text("h1").contains("redis"));
    assert_eq!(browser.complaints(), [""; 0]);
    assert_eq!(browser.eval("colour.theme()"), "dark");
}

/// Names that try to become markup stay text.
#[test]
fn hostile_names_stay_text() {
    let attack =
        "</script><script>window.broken=1</script><img src=x onerror=\"window.broken=1\">\u{202e}\u{0}'\"";
    let mut hostile: Value = serde_json::from_slice(&fs::read(fixture("sqlite3.json")).unwrap()).unwrap();
    hostile["program"]["cmdline"] = json!([attack]);
    hostile["program"]["exe"] = attack.into();
    hostile["config"]["mode"] = attack.into();
    hostile["config"]["watch"] = attack.into();
    hostile["host"]["cpu"] = attack.into();
    hostile["warnings"] = json!([attack]);
    hostile["unpatched"] = json!([{"reason": attack, "faults": 7}]);
    for module in hostile["modules"].as_array_mut().unwrap() {
        module["path"] = format!("/x{attack}").into();
    }
    for object in hostile["objects"].as_array_mut().unwrap() {
        object["label"] = attack.into();
    }
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("hostile.json"), hostile.to_string()).unwrap();
    let page = page(&sandbox, &[sandbox.path("hostile.json")]);
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(html.matches("<script").count(), 3);
    assert!(!html.contains("<img"));
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page, "");
    assert_eq!(browser.eval("typeof window.broken"), "undefined");
    assert_eq!(browser.eval("document.images.length + document.scripts.length"), 3);
    assert!(browser.text("h1").contains("<img src=x"));
    assert_eq!(browser.complaints(), [""; 0]);
}

/// A program whose sites are known beforehand: what the page says about them must be so.
const PLANTED: &str = include_str!("fixtures/known_sites.c");

#[test]
fn planted_sites_are_named() {
    let Ok(directory) = std::env::var("THERMALLOC_TEST_BIN") else {
        println!("SKIP: THERMALLOC_TEST_BIN does not say where libthermalloc.so is");
        return;
    };
    let sandbox = Sandbox::new();
    sandbox.compile(PLANTED, "planted", &["-g", "-O0", "-pthread", "-Wl,--build-id"]);
    let output = run(Command::new(PROGRAM)
        .args(["run", "--mode", "emulate", "--depth", "4", "-o", "heat.json", "--", "./planted"])
        .current_dir(sandbox.root())
        .env("THERMALLOC_LIB", Path::new(&directory).join("libthermalloc.so")));
    assert!(output.status.success(), "{output:?}");
    check_planted(&data(&page(&sandbox, &[sandbox.path("heat.json")]))["runs"][0]);
}

fn check_planted(run: &Value) {
    let names: Vec<&str> =
        run["names"].as_array().unwrap().iter().map(|name| name["name"].as_str().unwrap()).collect();
    let sites = &run["sites"];
    let row = |name: &str| {
        let labels = sites["label"].as_array().unwrap();
        let at =
            labels.iter().position(|label| label.as_u64().is_some_and(|label| names[label as usize] == name));
        at.unwrap_or_else(|| panic!("no site {name}"))
    };
    let number = |column: &str, name: &str| sites[column][row(name)].as_u64().unwrap();
    assert_eq!(number("reads", "hot") + number("writes", "hot"), 40_000 + 64);
    assert_eq!(row("hot"), 0, "the hottest comes first");
    assert_eq!((number("reads", "never_read"), number("writes", "never_read")), (0, 1000));
    assert_eq!((number("reads", "never_written"), number("writes", "never_written")), (500, 0));
    assert_eq!((number("reads", "cold"), number("writes", "cold")), (1, 1));
    assert_eq!(number("threads", "shared"), 3);
    assert_eq!(number("threads", "hot"), 1);
    // The hot spot lies in one granule of an object of 64 KiB.
    let strip = &sites["strip"][row("spot")];
    let reads = strip["reads"].as_str().unwrap();
    let cells: Vec<&str> = (0..reads.len() / 2).map(|at| &reads[2 * at..2 * at + 2]).collect();
    let hot: Vec<usize> = (0..cells.len()).filter(|&at| cells[at] != "AA").collect();
    assert_eq!(
        hot.iter().map(|&at| at as u64 * strip["cell"].as_u64().unwrap()).collect::<Vec<_>>(),
        [40_960]
    );
    let hottest = &run["objects"];
    assert_eq!(hottest["site"][0], sites["id"][row("hot")]);
    // Half of all accesses fit into the hot object.
    let by_object = run["curves"].as_array().unwrap().iter().find(|curve| curve["by"] == "object").unwrap();
    assert_eq!(by_object["marks"][0]["bytes"], 512);
    let rows = run["map"]["views"][0]["rows"].as_array().unwrap();
    assert_eq!(rows[0]["site"], sites["id"][row("hot")]);
    let flame = run["flame"]["function"].as_array().unwrap();
    let boxes: Vec<&str> = flame.iter().filter_map(|name| Some(names[name.as_u64()? as usize])).collect();
    assert!(["main", "hot", "cold", "shared"].iter().all(|name| boxes.contains(name)), "{boxes:?}");
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    let sandbox = Sandbox::new();
    let whole = fs::read_to_string(fixture("redis.json")).unwrap();
    fs::write(sandbox.path("truncated"), &whole[..whole.len() / 2]).unwrap();
    fs::write(sandbox.path("foreign"), "[1, 2]").unwrap();
    fs::write(sandbox.path("good"), &whole).unwrap();
    for arguments in [
        &["missing"][..],
        &["truncated"],
        &["foreign"],
        &["good", "truncated"],
        &["good", "-o", "no/such/dir.html"],
        &[],
    ] {
        let output = report(&sandbox, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert_eq!(lines(&output.stderr).len(), 1, "{arguments:?}: {output:?}");
        assert!(!sandbox.path("report.html").exists());
    }
}

/// However many sites and objects: the page is small, says what was cut, and stays quick in a browser.
#[test]
fn a_page_of_100_000_sites_and_objects() {
    let sandbox = Sandbox::new();
    let frames: Vec<Value> = (0..20_000).map(|at| json!({"ip": 4096 + at, "module": null})).collect();
    let sites: Vec<Value> = (0..100_000u64)
        .map(|id| {
            let stack: Vec<u64> = (0..12).map(|depth| (id * (depth + 1)) % 20_000).collect();
            json!({"id": id, "frames": stack, "allocs": 3, "bytes": 64 + id, "peak_live_bytes": 64, "reads": id * 7919 % 100_003, "writes": id % 3})
        })
        .collect();
    let counts: Vec<u64> = (0..64).collect();
    let objects: Vec<Value> = (0..100_000u64)
        .map(|at| {
            json!({"addr": 4096 + 1024 * at, "size": 1024, "site": at, "class": at % 40, "reads": at, "writes": 1, "threads": 1,
                "first_access_ns": at, "last_access_ns": at * 1000, "heat": {"granule": 16, "reads": counts, "writes": counts}})
        })
        .collect();
    let t_ns: Vec<u64> = (0..64).map(|at| at * 1_000_000).collect();
    let rows: Vec<Value> = (0..5_000)
        .map(|site| json!({"site": site, "reads": vec![site; 64], "writes": vec![1; 64]}))
        .collect();
    let report = json!({"format": "thermalloc-heat", "version": 1, "sites": sites, "objects": objects, "frames": frames,
        "program": {"elapsed_ns": 64_000_000}, "timeline": {"interval_ns": 1_000_000, "t_ns": t_ns, "sites": rows}});
    fs::write(sandbox.path("large.json"), report.to_string()).unwrap();
    let page = page(&sandbox, &[sandbox.path("large.json")]);
    assert!(fs::metadata(&page).unwrap().len() < 5_000_000);
    assert!(data(&page)["runs"][0]["cut"].as_array().unwrap().len() >= 2);
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page, "");
    assert_eq!(browser.complaints(), [""; 0]);
    assert!(browser.eval("document.querySelectorAll('*').length").as_u64().unwrap() < 5_000);
}
