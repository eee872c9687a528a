//! Grafana's dashboard, which is made from the table of families. `tests/run regenerate` writes it
//! anew.
use lumalloc_exporter::metrics::{Family, Group, Kind, Unit, families};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const WIDTH: usize = 24;
const FILTER: &str = "{job=~\"$job\", instance=~\"$instance\"}";

fn family(name: &str) -> &'static Family {
    let found = families().iter().find(|family| family.name == name);
    found.unwrap_or_else(|| panic!("no family is named {name}"))
}

/// Whether a family is a moment and not a length of time.
fn is_moment(family: &Family) -> bool {
    family.name.ends_with("_time_seconds")
}

/// Returns what a panel shows of a family.
fn expression(family: &Family) -> String {
    let (name, interval) = (family.name, "[$__rate_interval]");
    if is_moment(family) {
        // Grafana reads moments in milliseconds.
        return format!("{name}{FILTER} * 1000");
    }
    match family.kind {
        Kind::Gauge | Kind::Info => format!("{name}{FILTER}"),
        Kind::Counter => format!("rate({name}{FILTER}{interval})"),
        Kind::Histogram => format!("sum by (le) (rate({name}_bucket{FILTER}{interval}))"),
    }
}

/// Returns Grafana's name of a unit.
fn unit(family: &Family) -> &'static str {
    if is_moment(family) {
        return "dateTimeAsIso";
    }
    match (family.kind, family.unit) {
        (Kind::Counter, Unit::Bytes) => "binBps",
        // Seconds in a second are a share of a CPU's time.
        (Kind::Counter, Unit::Seconds) => "percentunit",
        (Kind::Counter, Unit::None) => "ops",
        (_, Unit::Bytes) => "bytes",
        (_, Unit::Seconds) => "s",
        (_, Unit::None) => "short",
    }
}

/// Returns the words of a family's name.
fn title(family: &Family) -> String {
    let name = family.name.trim_start_matches("lumalloc_").trim_end_matches("_total");
    let unit = family.unit.name();
    let name = if unit.is_empty() { name } else { name.trim_end_matches(unit) };
    let mut words = name.trim_matches('_').replace('_', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    if family.kind == Kind::Counter { format!("{words} per second") } else { words }
}

fn legend(family: &Family) -> String {
    let labels = family.labels.iter().map(|label| format!(" {{{{{label}}}}}"));
    format!("{{{{instance}}}}{}", labels.collect::<String>())
}

/// Returns one line of a graph.
fn target(at: usize, family: &Family, legend: String) -> Value {
    let letter = char::from(b'A' + u8::try_from(at).expect("few targets"));
    let mut target = json!({
        "refId": letter.to_string(),
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "expr": expression(family),
        "legendFormat": legend,
    });
    match family.kind {
        Kind::Histogram => target["format"] = "heatmap".into(),
        Kind::Info => {
            target["format"] = "table".into();
            target["instant"] = true.into();
        }
        _ => {}
    }
    target
}

fn panel(kind: &str, title: &str, help: &str, size: (usize, usize)) -> Value {
    json!({
        "type": kind,
        "title": title,
        "description": help,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"w": size.0, "h": size.1},
    })
}

/// Returns a panel for one family.
fn of_family(family: &Family) -> Value {
    let kind = match family.kind {
        _ if is_moment(family) => "stat",
        Kind::Histogram => "heatmap",
        Kind::Info => "table",
        Kind::Gauge | Kind::Counter => "timeseries",
    };
    let help = format!("{} (`{}`)", family.help, family.name);
    let mut panel = panel(kind, &title(family), &help, (8, 7));
    panel["targets"] = json!([target(0, family, legend(family))]);
    panel["fieldConfig"] = json!({"defaults": {"unit": unit(family)}, "overrides": []});
    match kind {
        "heatmap" => {
            panel["options"] = json!({"calculate": false, "yAxis": {"unit": "bytes"}});
            panel["targets"][0]["legendFormat"] = "{{le}}".into();
        }
        "timeseries" if family.kind == Kind::Counter => {
            panel["fieldConfig"]["defaults"]["min"] = 0.into();
        }
        _ => {}
    }
    panel
}

/// Returns a panel with a number, for the top.
fn stat(name: &str, title: &str) -> Value {
    let family = family(name);
    let mut panel = panel("stat", title, &family.help, (4, 4));
    panel["targets"] = json!([target(0, family, "{{instance}}".into())]);
    panel["fieldConfig"] = json!({"defaults": {"unit": unit(family)}, "overrides": []});
    panel["options"] = json!({"graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"]}});
    panel
}

/// Returns a graph of several families.
fn graph(title: &str, help: &str, stacked: bool, names: &[&str], size: (usize, usize)) -> Value {
    let mut panel = panel("timeseries", title, help, size);
    let line = |(at, name): (usize, &&str)| {
        let family = family(name);
        target(at, family, title_of_line(family))
    };
    panel["targets"] = names.iter().enumerate().map(line).collect();
    let custom = if stacked {
        json!({"fillOpacity": 60, "lineWidth": 0, "stacking": {"mode": "normal"}})
    } else {
        json!({"fillOpacity": 0})
    };
    let unit = unit(family(names[0]));
    panel["fieldConfig"] =
        json!({"defaults": {"unit": unit, "min": 0, "custom": custom}, "overrides": []});
    panel["options"] = json!({"tooltip": {"mode": "multi"}});
    panel
}

fn title_of_line(family: &Family) -> String {
    let labels = family.labels.iter().map(|label| format!(" {{{{{label}}}}}"));
    format!("{{{{instance}}}} {}{}", title(family), labels.collect::<String>())
}

/// Returns the first panels: how much memory there is, where it is, whether it grows, what is
/// wrong.
fn overview() -> Vec<Value> {
    let parts = [
        "lumalloc_allocated_bytes",
        "lumalloc_slab_free_bytes",
        "lumalloc_thread_cache_bytes",
        "lumalloc_remote_pending_bytes",
        "lumalloc_dirty_bytes",
        "lumalloc_muzzy_bytes",
        "lumalloc_metadata_bytes",
    ];
    let process = [
        "lumalloc_process_resident_bytes",
        "lumalloc_heap_resident_bytes",
        "lumalloc_resident_bytes",
        "lumalloc_allocated_bytes",
        "lumalloc_held_bytes",
        "lumalloc_soft_limit_bytes",
    ];
    vec![
        stat("lumalloc_allocated_bytes", "Allocated"),
        stat("lumalloc_resident_bytes", "Resident"),
        stat("lumalloc_process_resident_bytes", "The process's RSS"),
        stat("lumalloc_allocations_total", "Allocations per second"),
        stat("lumalloc_threads", "Threads"),
        stat("lumalloc_out_of_memory_total", "Failed allocations per second"),
        graph(
            "Where resident memory is",
            "The parts add up to what the allocator calls resident.",
            true,
            &parts,
            (12, 10),
        ),
        graph(
            "The process and its heap",
            "What lies between the process's RSS and the heap's is not the allocator's.",
            false,
            &process,
            (12, 10),
        ),
    ]
}

/// Returns the title of a collapsed row.
fn row_title(group: Group) -> &'static str {
    match group {
        Group::Build => "What was built and set at the start",
        Group::Settings => "Settings and limits",
        Group::Memory => "Memory, by the allocator's count",
        Group::Process => "Memory, by the system's count",
        Group::Traffic => "Allocations",
        Group::Work => "Slow paths",
        Group::Locks => "Locks",
        Group::Purging => "Giving memory back",
        Group::NamedArenas => "Arenas by name",
        Group::Regions => "Regions by name",
        Group::Arenas => "Every arena (collect[]=arenas)",
        Group::Bins => "Small classes (collect[]=bins)",
        Group::Lextents => "Large classes (collect[]=lextents)",
        Group::Extents => "Unused runs of pages (collect[]=extents)",
        Group::Mutexes => "Every lock (collect[]=mutexes)",
        Group::Engine => "Slow paths, finely (collect[]=engine)",
        Group::Exporter => "The exporter itself",
    }
}

/// Puts panels side by side, from line `y` on. Returns the line below them.
fn place(panels: &mut [Value], mut y: usize) -> usize {
    let (mut x, mut height) = (0, 0);
    for panel in panels {
        let size = |side: &str| panel["gridPos"][side].as_u64().expect("a size") as usize;
        let (w, h) = (size("w"), size("h"));
        if x + w > WIDTH {
            (x, y, height) = (0, y + height, 0);
        }
        panel["gridPos"]["x"] = x.into();
        panel["gridPos"]["y"] = y.into();
        x += w;
        height = height.max(h);
    }
    y + height
}

fn number(panels: &mut [Value], next: &mut usize) {
    for panel in panels {
        panel["id"] = (*next).into();
        *next += 1;
        if let Some(inner) = panel["panels"].as_array_mut() {
            number(inner, next);
        }
    }
}

fn variable(name: &str, query: &str) -> Value {
    json!({
        "name": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": query, "refId": "A"},
        "refresh": 2,
        "multi": true,
        "includeAll": true,
        "current": {"text": "All", "value": "$__all"},
    })
}

fn dashboard() -> Value {
    let mut panels = overview();
    let below = place(&mut panels, 0);
    for (y, group) in (below..).zip(Group::ALL) {
        let of_group = families().iter().filter(|family| family.group == group);
        let mut inner: Vec<Value> = of_group.map(of_family).collect();
        place(&mut inner, y + 1);
        panels.push(json!({
            "type": "row",
            "title": row_title(group),
            "collapsed": true,
            "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
            "panels": inner,
        }));
    }
    number(&mut panels, &mut 1);
    json!({
        "uid": "lumalloc",
        "title": "lumalloc",
        "tags": ["lumalloc", "memory"],
        "schemaVersion": 41,
        "editable": true,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "graphTooltip": 1,
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus"},
            variable("job", "label_values(lumalloc_build_info, job)"),
            variable("instance", "label_values(lumalloc_build_info{job=~\"$job\"}, instance)"),
        ]},
        "annotations": {"list": [{
            "name": "Alerts",
            "enable": true,
            "iconColor": "red",
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "expr": "ALERTS{alertname=~\"Lumalloc.*\", alertstate=\"firing\", instance=~\"$instance\"}",
            "titleFormat": "{{alertname}} {{instance}}",
        }]},
        "panels": panels,
    })
}

#[test]
fn the_dashboard_is_made_from_the_families() {
    let text = serde_json::to_string_pretty(&dashboard()).expect("JSON") + "\n";
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy/grafana/dashboards/lumalloc.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, &text).expect("the file");
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == text,
        "deploy/grafana/dashboards/lumalloc.json is not what the families make: \
         tests/run regenerate"
    );
}

#[test]
fn every_family_has_a_panel_and_panels_do_not_overlap() {
    let dashboard = dashboard();
    let text = dashboard.to_string();
    for family in families() {
        let start = format!("{}{{", family.name);
        let bucket = format!("{}_bucket{{", family.name);
        assert!(text.contains(&start) || text.contains(&bucket), "{} has no panel", family.name);
    }
    let mut seen = vec![];
    for panel in dashboard["panels"].as_array().unwrap() {
        let at = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        for y in at("y")..at("y") + at("h") {
            for x in at("x")..at("x") + at("w") {
                assert!(!seen.contains(&(x, y)), "{} lies on another", panel["title"]);
                seen.push((x, y));
            }
        }
    }
}

/// By default all instances are shown. A histogram is the sum over them.
#[test]
fn every_line_names_its_instance() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let inner = panels.iter().flat_map(|panel| panel["panels"].as_array().into_iter().flatten());
    for panel in panels.iter().chain(inner) {
        if panel["type"] == "heatmap" || panel["type"] == "table" {
            continue;
        }
        for target in panel["targets"].as_array().into_iter().flatten() {
            let legend = target["legendFormat"].as_str().unwrap();
            assert!(legend.contains("{{instance}}"), "{}: {legend}", panel["title"]);
        }
    }
}

#[test]
fn the_start_is_shown_as_a_date() {
    let family = family("lumalloc_start_time_seconds");
    let panel = of_family(family);
    assert_eq!(panel["fieldConfig"]["defaults"]["unit"], "dateTimeAsIso");
    let expression = panel["targets"][0]["expr"].as_str().unwrap();
    assert!(expression.ends_with(" * 1000"), "milliseconds: {expression}");
}

/// Collects all expressions of a dashboard.
fn expressions(of: &Value, found: &mut Vec<String>) {
    match of {
        Value::Object(fields) => {
            found.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| expressions(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        _ => {}
    }
}

#[test]
fn prometheus_understands_every_expression() {
    let mut found = Vec::new();
    expressions(&dashboard(), &mut found);
    assert!(found.len() > families().len());
    let mut rules = String::from("groups:\n  - name: dashboard\n    rules:\n");
    for (number, expression) in found.iter().enumerate() {
        let plain = expression.replace("$__rate_interval", "5m");
        rules += &format!("      - record: panel:{number}\n        expr: {}\n", json!(plain));
    }
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dashboard.rules.yml");
    fs::write(&file, rules).expect("the rules");
    let output = Command::new("promtool").args(["check", "rules"]).arg(&file).output();
    let output = output.expect("promtool, of Debian's package prometheus");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
