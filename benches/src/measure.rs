//! The measurements: time and peak RSS in interleaved rounds, RSS after idling, system calls, and
//! instructions. Each of them fills a [`Store`].

mod calls;
mod idle;
pub(crate) mod instructions;
mod rounds;

use crate::cases::Case;
use crate::peers::Peer;
use crate::prepare::{Contender, Programs};
use crate::progress::progress;
use crate::store::{Row, Store};

/// What is measured, for which peers, and how much of it.
pub(crate) struct Task<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) contenders: &'a [Contender],
    pub(crate) cases: &'a [Case],
    pub(crate) rounds: usize,
    pub(crate) scale: u32,
    pub(crate) facts: Vec<(String, String)>,
    /// Called after each round with the results so far, so that they are not lost if the
    /// measurement is cut short.
    pub(crate) save: &'a dyn Fn(&Store),
}

/// A kind of measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Time, peak RSS and faults.
    Ratios,
    /// RSS after idling.
    Idle,
    /// System calls about memory.
    Calls,
    /// Instructions per operation.
    Instructions,
}

impl Kind {
    /// All kinds, in the order in which they are measured.
    pub(crate) const ALL: [Self; 4] = [Self::Ratios, Self::Idle, Self::Calls, Self::Instructions];

    /// The name of the command and of its file of results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ratios => "ratios",
            Self::Idle => "idle",
            Self::Calls => "calls",
            Self::Instructions => "instructions",
        }
    }

    /// The columns of the kind's store.
    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Ratios => rounds::COLUMNS,
            Self::Idle => idle::COLUMNS,
            Self::Calls => calls::COLUMNS,
            Self::Instructions => instructions::COLUMNS,
        }
    }

    /// Whether the case is measured in this way.
    pub(crate) fn wants(self, case: Case) -> bool {
        match self {
            Self::Ratios | Self::Calls => true,
            Self::Idle => case.workload.idles,
            Self::Instructions => case.workload.counted,
        }
    }

    /// Does this measurement.
    pub(crate) fn measure(self, task: &Task<'_>) -> Store {
        match self {
            Self::Ratios => rounds::all(task),
            Self::Idle => idle::all(task),
            Self::Calls => task.each_once(self, calls::one),
            Self::Instructions => task.each_once(self, instructions::one),
        }
    }
}

/// The numbers of one run.
type Outcome = Result<Vec<f64>, String>;

impl Task<'_> {
    fn admitted(&self, case: Case) -> impl Iterator<Item = &Contender> {
        self.contenders.iter().filter(move |contender| case.door.admits(contender.peer))
    }

    /// Runs every case on every peer once: for numbers that do not depend on time.
    fn each_once(&self, kind: Kind, one: fn(&Self, Case, &Contender) -> Outcome) -> Store {
        let mut store = Store::new(kind.columns(), self.facts.clone());
        for &case in self.cases {
            for contender in self.admitted(case) {
                if kind == Kind::Instructions && !contender.peer.can_be_counted() {
                    continue;
                }
                progress(&format!("{}: {} {}", kind.name(), case.name(), contender.peer.name));
                store.push(row(case, contender.peer, 1, one(self, case, contender)));
            }
        }
        progress("");
        store
    }
}

fn row(case: Case, peer: &'static Peer, round: usize, outcome: Outcome) -> Row {
    Row { case, peer, round, outcome }
}
