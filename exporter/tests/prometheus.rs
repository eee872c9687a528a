//! A running service is scraped: by the test, and (in the step `slow-exporter` of tests/run) by
//! Prometheus, which answers queries about it.
mod client;

use client::{any, body, raw, request, status};
use lumalloc::Arena;
use lumalloc_exporter::Exporter;
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

/// A server that ends with the test.
struct Prometheus {
    server: Child,
    address: SocketAddr,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Prometheus {
    /// Starts a server that scrapes a service every second, plainly and in every detail.
    fn start(place: &Path, service: SocketAddr) -> Prometheus {
        let detail = "[arenas, 'bins,lextents', extents, mutexes, engine]";
        let settings = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
             scrape_configs:\n\
             - {{job_name: plain, static_configs: [{{targets: ['{service}']}}]}}\n\
             - {{job_name: detail, params: {{'collect[]': {detail}}}, \
             static_configs: [{{targets: ['{service}']}}]}}\n"
        );
        let file = place.join("prometheus.yml");
        fs::write(&file, settings).unwrap();
        let address = TcpListener::bind(any()).unwrap().local_addr().unwrap();
        let server = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", place.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdout(Stdio::null())
            .spawn()
            .expect("prometheus is there");
        Prometheus { server, address }
    }

    /// Returns the data of an answer of the API, if it answers.
    fn ask(&self, path: &str) -> Option<Value> {
        std::net::TcpStream::connect(self.address).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
        let answer = raw(self.address, request.as_bytes());
        let answer: Value = serde_json::from_str(body(&answer)).ok()?;
        (answer["status"] == "success").then(|| answer["data"].clone())
    }

    /// Returns the numbers of a query.
    fn query(&self, query: &str) -> Vec<f64> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let data = self.ask(&format!("/api/v1/query?query={encoded}"));
        let results = data.and_then(|data| data["result"].as_array().cloned()).unwrap_or_default();
        let number = |one: &Value| one["value"][1].as_str().and_then(|text| text.parse().ok());
        results.iter().filter_map(number).collect()
    }

    /// Repeats a query until the numbers are right.
    fn wait(&self, query: &str, right: impl Fn(&[f64]) -> bool) {
        let begin = Instant::now();
        loop {
            let numbers = self.query(query);
            if right(&numbers) {
                return;
            }
            assert!(begin.elapsed() < client::LONG, "{query}: {numbers:?}");
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Allocates and frees until `stop` is set.
fn work(stop: &AtomicBool) {
    let mut blocks = Vec::new();
    while !stop.load(Relaxed) {
        blocks.push(vec![1u8; 100 + blocks.len() * 7]);
        if blocks.len() > 1000 {
            blocks.clear();
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn metrics_come_over_the_wire_and_count_who_asked() {
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    let accept = "Accept: application/openmetrics-text;version=1.0.0\r\n";
    let ask = || raw(address, &request("GET", "/metrics", &address.to_string(), accept));
    assert_eq!(status(&ask()), 200);
    let second = ask();
    let kind = "\r\ncontent-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n";
    assert!(second.contains(kind), "{second}");
    assert!(body(&second).ends_with("\n# EOF\n"), "{second}");
    let asked = "\nlumalloc_exporter_requests_total\
                 {path=\"/metrics\",method=\"GET\",status=\"2xx\"} 1.0\n";
    assert!(body(&second).contains(asked), "{second}");
    let wrong = client::get(address, "/metrics?collect[]=heap");
    assert_eq!(status(&wrong), 400);
    assert!(body(&wrong).starts_with("no collector \"heap\"; collect[] adds arenas, "), "{wrong}");
}

#[test]
#[ignore = "needs prometheus"]
fn prometheus_scrapes_and_answers() {
    let place = std::env::temp_dir().join(format!("lumalloc-{}-prometheus", std::process::id()));
    fs::create_dir_all(&place).unwrap();
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let tenant = Arena::named("tenant").unwrap();
    let held = tenant.run(|| vec![1u8; 1 << 20]).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        (0..2).for_each(|_| _ = scope.spawn(|| work(&stop)));
        let prometheus = Prometheus::start(&place, exporter.address().unwrap());
        judge(&prometheus);
        stop.store(true, Relaxed);
    });
    drop((held, exporter));
    fs::remove_dir_all(place).unwrap();
}

fn judge(prometheus: &Prometheus) {
    let one = |numbers: &[f64]| numbers.len() == 1;
    let zeros = |numbers: &[f64]| numbers.len() == 2 && numbers.iter().all(|n| *n == 0.0);
    prometheus.wait("up == 1", |numbers| numbers.len() == 2);
    prometheus.wait("rate(lumalloc_allocations_total{job='plain'}[5s]) > 1000", one);
    // Sums over arenas equal the totals, and the parts of memory add up to the resident bytes.
    prometheus.wait(
        "sum by (job) (lumalloc_arena_allocated_bytes) - sum by (job) (lumalloc_allocated_bytes)",
        zeros,
    );
    prometheus.wait(
        "sum by (job) ({__name__=~'lumalloc_(allocated|slab_free|remote_pending|thread_cache|\
         dirty|muzzy|metadata)_bytes'}) - sum by (job) (lumalloc_resident_bytes)",
        zeros,
    );
    prometheus.wait("lumalloc_arena_allocated_bytes{job='plain',arena='tenant'} >= 1048576", one);
    prometheus.wait(
        "histogram_quantile(0.5, rate(lumalloc_allocation_size_bytes_bucket{job='plain'}[5s])) > 64",
        one,
    );
    prometheus.wait("sum(rate(lumalloc_system_calls_total{job='plain'}[5s]))", one);
    prometheus.wait("lumalloc_build_info{job='plain',version=~'.+'} == 1", one);
    prometheus.wait("sum(lumalloc_collector_success == 0) or vector(0)", |n| n == [0.0]);
    prometheus.wait("min(lumalloc_snapshot_consistent)", |numbers| numbers == [1.0]);
    prometheus.wait("count(lumalloc_bin_slabs{job='detail'}) > 30", one);
    prometheus.wait("count(lumalloc_bin_slabs{job='plain'}) or vector(0)", |n| n == [0.0]);
    prometheus.wait("lumalloc_exporter_requests_total{job='plain',path='/metrics'} > 2", one);
    prometheus.wait("scrape_samples_scraped{job='plain'} < 400", one);
    let targets = prometheus.ask("/api/v1/targets?state=active").unwrap();
    for target in targets["activeTargets"].as_array().unwrap() {
        assert_eq!(target["lastError"], "", "{target}");
    }
    // Metrics that came by OpenMetrics have their type, help and unit.
    let path = "/api/v1/metadata?metric=lumalloc_lock_wait_seconds_total";
    let metadata = prometheus.ask(path).unwrap();
    let known = &metadata["lumalloc_lock_wait_seconds_total"][0];
    let known = if known.is_null() {
        prometheus.ask("/api/v1/metadata?metric=lumalloc_lock_wait_seconds").unwrap()
            ["lumalloc_lock_wait_seconds"][0]
            .clone()
    } else {
        known.clone()
    };
    assert_eq!(known["type"], "counter", "{metadata}");
    assert_eq!(known["help"], "Time that threads slept for locks, by what they guard.");
}
