//! A store of orders behind HTTP: `GET /orders/{id}` answers one as JSON, `POST` parses one and
//! keeps it. Two threads of tokio; an order is often freed by another thread than the one that made
//! it. Prints `listening ADDRESS` and ends on SIGTERM.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Clone, Deserialize, Serialize)]
struct Line {
    article: String,
    pieces: u32,
    price: f64,
}

#[derive(Clone, Deserialize, Serialize)]
struct Order {
    customer: String,
    note: String,
    lines: Vec<Line>,
}

/// Orders by number, and the numbers of every customer.
#[derive(Default)]
struct Store {
    orders: HashMap<u64, Arc<Order>>,
    customers: BTreeMap<String, Vec<u64>>,
}

type Shared = Arc<Mutex<Store>>;

async fn read(State(store): State<Shared>, Path(id): Path<u64>) -> Result<Json<Order>, StatusCode> {
    let found = store.lock().unwrap_or_else(PoisonError::into_inner).orders.get(&id).cloned();
    found.map(|order| Json(Order::clone(&order))).ok_or(StatusCode::NOT_FOUND)
}

async fn write(
    State(store): State<Shared>,
    Path(id): Path<u64>,
    Json(order): Json<Order>,
) -> Json<usize> {
    let order = Arc::new(order);
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    let numbers = store.customers.entry(order.customer.clone()).or_default();
    numbers.push(id);
    if numbers.len() > 64 {
        numbers.drain(..32);
    }
    let known = numbers.len();
    store.orders.insert(id, order);
    Json(known)
}

#[tokio::main(worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let application =
        Router::new().route("/orders/{id}", get(read).post(write)).with_state(Shared::default());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening {}", listener.local_addr()?);
    std::io::stdout().flush()?;
    let mut ended = signal(SignalKind::terminate())?;
    // No graceful end: connections that wrk left open are not waited for.
    tokio::select! {
        served = async { axum::serve(listener, application).await } => served,
        _ = ended.recv() => Ok(()),
    }
}
