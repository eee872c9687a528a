//! Work that is done by one request at a time. Another request is refused instead of waiting.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Work that one request at a time may do.
#[derive(Clone, Default)]
pub(crate) struct SingleFlight(Arc<AtomicBool>);

/// The right to do the work. Dropping it lets the next request do it.
#[must_use]
pub(crate) struct Flight(Arc<AtomicBool>);

impl SingleFlight {
    /// Returns the right to do the work, or `None` if another request has it.
    pub(crate) fn enter(&self) -> Option<Flight> {
        // Acquire: pairs with the Release in `drop`, so that a flight sees what the last one did.
        let was = self.0.swap(true, Ordering::Acquire);
        (!was).then(|| Flight(Arc::clone(&self.0)))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `enter`.
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_even_of_many() {
        let once = SingleFlight::default();
        let inside = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (once, inside) = (once.clone(), Arc::clone(&inside));
                std::thread::spawn(move || {
                    let mut entered = 0;
                    for _ in 0..1000 {
                        let Some(flight) = once.enter() else { continue };
                        assert!(!inside.swap(true, Ordering::Relaxed));
                        inside.store(false, Ordering::Relaxed);
                        drop(flight);
                        entered += 1;
                    }
                    entered
                })
            })
            .collect();
        assert!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u32>() > 0);
        let flight = once.enter();
        assert!(flight.is_some() && once.enter().is_none());
        drop(flight);
        assert!(once.enter().is_some());
    }
}
