//! The thread that reads the allocator. It does one job after the other, so that a lock of the
//! allocator never holds up the connections. Between jobs it gives memory of an idle process back.
use crate::answer::{Answer, line};
use crate::client::Client;
use crate::quiet_thread::{self, Quiet};
use hyper::StatusCode;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The most jobs that may wait.
const WAITING: usize = 32;
/// The number of waiting jobs from which a job that is not a scrape is refused, so that other
/// requests do not keep the numbers from being read.
const OTHERS: usize = 16;
/// How long a stop waits for the running job. After that the thread is left behind. It hangs in the
/// allocator, and ends with the job.
pub(crate) const STOPS_WITHIN: Duration = Duration::from_secs(2);

struct Job {
    work: Box<dyn FnOnce() -> Answer + Send>,
    answer: oneshot::Sender<Answer>,
    until: Instant,
    client: Client,
}

impl Job {
    /// Whether nobody is there to take the answer. A client that has closed its side may wait for
    /// it all the same, so this is asked only where there is no room for others.
    fn is_left(&self) -> bool {
        self.answer.is_closed() || self.client.has_closed()
    }
}

/// The jobs that wait.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    jobs: VecDeque<Job>,
    /// Whether the chores are wanted soon.
    is_woken: bool,
    /// Whether no more jobs will come.
    is_closed: bool,
    /// Whether the thread is gone.
    is_gone: bool,
}

/// What the thread does next.
enum Turn {
    Job(Job),
    Chores,
    End,
}

/// Work that the thread does besides its jobs.
pub(crate) trait Chores: Send {
    /// Called once on the thread, before everything else.
    fn begin(&mut self);
    /// Called after each job, and when it is due. Returns when it is due again.
    fn next(&mut self, now: Instant) -> Option<Instant>;
}

/// What the thread calls before its next job.
type Next = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// The handle of the thread. Dropping it ends the thread.
pub(crate) struct Worker {
    queue: Arc<Queue>,
    next: Arc<Next>,
    thread: Quiet,
}

/// Why a job was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// Too many jobs wait.
    Full,
    /// The thread is gone.
    Gone,
}

impl Queue {
    fn new() -> Arc<Queue> {
        let jobs = VecDeque::with_capacity(WAITING);
        let state = State { jobs, is_woken: false, is_closed: false, is_gone: false };
        Arc::new(Queue { state: Mutex::new(state), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a job behind at most so many others. If there are as many, those that nobody waits for
    /// make room.
    fn put(&self, job: Job, most: usize) -> Result<(), Busy> {
        let mut state = self.lock();
        if state.is_gone {
            return Err(Busy::Gone);
        }
        if state.jobs.len() >= most {
            state.jobs.retain(|job| !job.is_left());
        }
        if state.jobs.len() >= most {
            return Err(Busy::Full);
        }
        state.jobs.push_back(job);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for a job, or until the chores are due.
    fn take(&self, due: Option<Instant>) -> Turn {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Turn::Job(job);
            }
            if std::mem::take(&mut state.is_woken) {
                return Turn::Chores;
            }
            if state.is_closed {
                return Turn::End;
            }
            state = match due.map(|due| due.saturating_duration_since(Instant::now())) {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return Turn::Chores,
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

/// Says that the thread is gone when it is dropped, as after a panic in the chores.
struct Ends(Arc<Queue>);

impl Drop for Ends {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_gone = true;
        state.jobs.clear();
    }
}

impl Worker {
    /// Starts the thread.
    pub(crate) fn start(chores: impl Chores + 'static) -> io::Result<Worker> {
        let queue = Queue::new();
        let next = Arc::new(Next::default());
        let (jobs, first) = (Ends(Arc::clone(&queue)), Arc::clone(&next));
        let thread = quiet_thread::spawn("lumalloc-read", move || work(&jobs.0, &first, chores))?;
        Ok(Worker { queue, next, thread })
    }

    /// Hands a job over, and returns the receiver of its answer. A job whose time is over before
    /// its turn is not done. Called on the thread that has the client's connection.
    pub(crate) fn run(
        &self,
        until: Instant,
        is_scrape: bool,
        client: Client,
        work: impl FnOnce() -> Answer + Send + 'static,
    ) -> Result<oneshot::Receiver<Answer>, Busy> {
        let (answer, take) = oneshot::channel();
        let job = Job { work: Box::new(work), answer, until, client };
        self.queue.put(job, if is_scrape { WAITING } else { OTHERS }).map(|()| take)
    }
}

impl Worker {
    /// Returns one whose thread has ended, as after a panic in its chores.
    #[cfg(test)]
    pub(crate) fn ended() -> Worker {
        let queue = Queue::new();
        drop(Ends(Arc::clone(&queue)));
        let thread = quiet_thread::spawn("lumalloc-ended", || ()).expect("a thread");
        Worker { queue, next: Arc::default(), thread }
    }

    /// Has the thread do its chores soon. If a job waits, they are done after it anyway.
    pub(crate) fn wake(&self) {
        let mut state = self.queue.lock();
        state.is_woken |= state.jobs.is_empty();
        drop(state);
        self.queue.changed.notify_one();
    }

    /// Has the thread call a function after the job that it does now, however long that takes and
    /// however many jobs wait.
    pub(crate) fn call_next(&self, call: impl FnOnce() + Send + 'static) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(call));
        self.wake();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_one();
        self.thread.join(STOPS_WITHIN);
    }
}

fn work(queue: &Queue, next: &Next, mut chores: impl Chores) {
    chores.begin();
    loop {
        let call = next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(call) = call {
            call();
        }
        match queue.take(chores.next(Instant::now())) {
            Turn::Job(job) => job.done(),
            Turn::Chores => {}
            Turn::End => return,
        }
    }
}

impl Job {
    /// Does the job, if somebody waits for it.
    fn done(self) {
        if self.answer.is_closed() || Instant::now() >= self.until {
            return;
        }
        // A panic in one answer must not end the thread. Where panics abort, none gets here.
        let answer = catch_unwind(AssertUnwindSafe(self.work)).unwrap_or_else(|_| {
            line(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be made")
        });
        // The receiver may be gone.
        let _ = self.answer.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{TEXT, body};
    use crate::testing::said;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::sync::mpsc::channel;

    struct Count(Arc<AtomicU32>, Option<Duration>);

    impl Chores for Count {
        fn begin(&mut self) {}
        fn next(&mut self, now: Instant) -> Option<Instant> {
            self.0.fetch_add(1, Relaxed);
            self.1.map(|period| now + period)
        }
    }

    impl Drop for Count {
        fn drop(&mut self) {
            // Who does not wait for the end of the thread finds the chores alive.
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn idle() -> Worker {
        Worker::start(Count(Arc::default(), None)).unwrap()
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn answer() -> Answer {
        body(TEXT, "done")
    }

    /// Starts a job that waits until the sender is dropped.
    fn stuck(worker: &Worker) -> std::sync::mpsc::Sender<()> {
        let (begun, begins) = channel();
        let (go, gone) = channel::<()>();
        let job = move || {
            begun.send(()).unwrap();
            let _ = gone.recv();
            answer()
        };
        drop(worker.run(later(), true, Client::UNKNOWN, answer).unwrap().blocking_recv());
        let waits = worker.run(later(), true, Client::UNKNOWN, job).unwrap();
        begins.recv().unwrap();
        std::mem::forget(waits);
        go
    }

    #[test]
    fn jobs_are_done_one_after_the_other() {
        let worker = idle();
        let first = worker.run(later(), true, Client::UNKNOWN, answer).unwrap();
        let second = worker.run(later(), true, Client::UNKNOWN, answer).unwrap();
        assert!(second.blocking_recv().is_ok() && first.blocking_recv().is_ok());
    }

    #[test]
    fn only_so_many_wait() {
        let worker = idle();
        let go = stuck(&worker);
        let wait = |is_scrape| worker.run(later(), is_scrape, Client::UNKNOWN, answer).unwrap();
        let mut waiting: Vec<_> = (0..OTHERS).map(|_| wait(false)).collect();
        assert_eq!(worker.run(later(), false, Client::UNKNOWN, answer).err(), Some(Busy::Full));
        waiting.extend((OTHERS..WAITING).map(|_| wait(true)));
        assert_eq!(worker.run(later(), true, Client::UNKNOWN, answer).err(), Some(Busy::Full));
        drop(go);
        assert!(waiting.into_iter().all(|waits| waits.blocking_recv().is_ok()));
    }

    /// A client that has closed its side keeps its place as long as nobody else wants it.
    #[test]
    fn who_has_left_makes_room_for_others() {
        let worker = idle();
        let go = stuck(&worker);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let run = |client| worker.run(later(), true, client, answer);
        let closed = run(Client::of(&ours)).unwrap();
        let mut waiting: Vec<_> = (2..WAITING).map(|_| run(Client::UNKNOWN).unwrap()).collect();
        drop(run(Client::UNKNOWN).unwrap());
        waiting.push(run(Client::of(&ours)).expect("one was dropped"));
        assert_eq!(run(Client::UNKNOWN).err(), Some(Busy::Full));
        let patient = waiting.pop().unwrap();
        drop(theirs);
        waiting.extend((0..2).map(|_| run(Client::UNKNOWN).expect("the client has left")));
        assert_eq!(run(Client::UNKNOWN).err(), Some(Busy::Full));
        drop(go);
        assert!(closed.blocking_recv().is_err() && patient.blocking_recv().is_err());
        assert!(waiting.into_iter().all(|waits| waits.blocking_recv().is_ok()));
    }

    /// It waits neither for a place among the jobs nor for those that wait.
    #[test]
    fn a_call_is_made_after_the_job_that_is_done_now() {
        let worker = idle();
        let go = stuck(&worker);
        let (called, calls) = channel();
        let said = called.clone();
        let job = move || {
            said.send("a job").unwrap();
            answer()
        };
        let wait = |_| worker.run(later(), true, Client::UNKNOWN, job.clone()).unwrap();
        let waiting: Vec<_> = (0..WAITING).map(wait).collect();
        worker.call_next(move || called.send("the call").unwrap());
        drop(go);
        assert_eq!(calls.recv(), Ok("the call"));
        assert!(waiting.into_iter().all(|waits| waits.blocking_recv().is_ok()));
        // Nor does it need one.
        let (called, calls) = channel();
        worker.call_next(move || called.send(()).unwrap());
        assert_eq!(calls.recv(), Ok(()));
    }

    #[test]
    fn what_nobodywaits_for_is_not_done() {
        let worker = idle();
        let done = Arc::new(AtomicU32::new(0));
        let go = stuck(&worker);
        let job = || {
            let done = Arc::clone(&done);
            move || {
                done.fetch_add(1, Relaxed);
                answer()
            }
        };
        drop(worker.run(later(), true, Client::UNKNOWN, job()).unwrap());
        let late = worker.run(Instant::now(), true, Client::UNKNOWN, job()).unwrap();
        let last = worker.run(later(), true, Client::UNKNOWN, job()).unwrap();
        drop(go);
        assert!(late.blocking_recv().is_err());
        assert!(last.blocking_recv().is_ok());
        assert_eq!(done.load(Relaxed), 1);
    }

    /// The thread that hangs is left behind. It ends when it can.
    #[test]
    fn a_stop_does_not_wait_for_ever() {
        let worker = idle();
        let go = stuck(&worker);
        drop(worker);
        drop(go);
    }

    #[test]
    fn chores_come_round_without_jobs() {
        let runs = Arc::new(AtomicU32::new(0));
        let worker = Worker::start(Count(Arc::clone(&runs), Some(Duration::from_millis(1))));
        while runs.load(Relaxed) < 3 {
            std::thread::yield_now();
        }
        drop(worker);
        // The thread owns the chores. It has ended.
        assert_eq!(Arc::strong_count(&runs), 1);
    }

    /// A snapshot of a peak may take long.
    #[test]
    fn a_job_does_not_wait_for_chores() {
        let runs = Arc::new(AtomicU32::new(0));
        let worker = Worker::start(Count(Arc::clone(&runs), None)).unwrap();
        for count in 1..=3 {
            let runs = Arc::clone(&runs);
            let job = move || body(TEXT, runs.load(Relaxed).to_string());
            let told =
                worker.run(later(), true, Client::UNKNOWN, job).unwrap().blocking_recv().unwrap();
            assert_eq!(said(told), (200, count.to_string()));
        }
    }

    #[test]
    fn chores_are_done_when_it_is_woken() {
        let runs = Arc::new(AtomicU32::new(0));
        let worker = Worker::start(Count(Arc::clone(&runs), None)).unwrap();
        drop(worker.run(later(), true, Client::UNKNOWN, answer).unwrap().blocking_recv());
        while runs.load(Relaxed) < 2 {
            std::thread::yield_now();
        }
        worker.wake();
        while runs.load(Relaxed) < 3 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_was_taken_is_done_before_the_end() {
        for _ in 0..20 {
            let worker = idle();
            let waits = worker.run(later(), true, Client::UNKNOWN, answer).unwrap();
            drop(worker);
            assert!(waits.blocking_recv().is_ok());
        }
    }

    #[test]
    fn a_job_that_panics_is_answered_and_the_next_one_done() {
        let worker = idle();
        let failed = worker.run(later(), true, Client::UNKNOWN, || panic!("on purpose")).unwrap();
        let text = "the answer could not be made\n";
        assert_eq!(said(failed.blocking_recv().unwrap()), (500, text.into()));
        assert!(
            worker.run(later(), true, Client::UNKNOWN, answer).unwrap().blocking_recv().is_ok()
        );
    }
}
