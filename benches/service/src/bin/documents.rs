//! A service without a network: one thread writes JSON documents, another parses them and keeps
//! them in a B-tree and in hash maps, evicts old ones, answers queries. `documents PERCENT`.
//!
//! The text of a document is freed by the thread that parsed it, not by the one that wrote it.

use lumalloc_bench_service::Random;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

const KEPT: usize = 60_000;

fn write(count: u64, out: &SyncSender<Vec<String>>) {
    let mut random = Random(88_172_645_463_325_252);
    let mut batch = Vec::new();
    for number in 0..count {
        let tags: Vec<String> = (0..random.below(6)).map(|_| random.word(3, 9)).collect();
        let parts: BTreeMap<String, u64> =
            (0..random.below(8)).map(|_| (random.word(3, 9), random.below(1000))).collect();
        let text =
            json!({ "number": number, "title": random.word(3, 9), "tags": tags, "parts": parts });
        batch.push(text.to_string());
        if batch.len() == 64 && out.send(std::mem::take(&mut batch)).is_err() {
            return;
        }
    }
    // The last batch; a reader that is gone has said why.
    let _ = out.send(batch);
}

#[derive(Default)]
struct Index {
    by_title: BTreeMap<String, Value>,
    by_tag: HashMap<String, Vec<String>>,
    order: VecDeque<String>,
}

impl Index {
    fn keep(&mut self, document: Value) {
        let title = document["title"].as_str().unwrap_or_default().to_owned();
        for tag in document["tags"].as_array().into_iter().flatten() {
            let tag = tag.as_str().unwrap_or_default();
            self.by_tag.entry(tag[..tag.len().min(3)].to_owned()).or_default().push(title.clone());
        }
        self.order.push_back(title.clone());
        self.by_title.insert(title, document);
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_title.remove(&oldest);
        }
    }

    /// Bytes of an answer: the documents of a range as text again.
    fn query(&mut self, from: &str) -> usize {
        let found: Vec<&Value> =
            self.by_title.range(from.to_owned()..).take(20).map(|(_, value)| value).collect();
        let length = serde_json::to_string(&found).map_or(0, |text| text.len());
        let tag = from.get(..3).unwrap_or(from);
        length + self.by_tag.remove(tag).map_or(0, |titles| titles.join(",").len())
    }
}

fn read(batches: &Receiver<Vec<String>>) -> (usize, usize) {
    let (mut index, mut answered, mut seen) = (Index::default(), 0, 0u64);
    for text in batches.iter().flatten() {
        seen += 1;
        match serde_json::from_str::<Value>(&text) {
            Ok(document) => {
                let title = document["title"].as_str().unwrap_or_default().to_owned();
                index.keep(document);
                if seen.is_multiple_of(10) {
                    answered += index.query(&title);
                }
            }
            Err(error) => eprintln!("document {seen}: {error}"),
        }
    }
    (index.by_title.len(), answered)
}

fn main() {
    let percent: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    let (send, receive) = sync_channel(16);
    let writer = thread::spawn(move || write(2000 * percent, &send));
    let (kept, answered) = read(&receive);
    let written = writer.join().is_ok();
    println!("{kept} {answered} {written}");
}
