//! The callers that messages name.

use super::machine::Registers;
use super::{Callers, MOST_OWN, room, walk_from};
use crate::ground::signal;
use crate::ground::trace::{TRACE, Trace, Walk};

/// Finds the callers by the unwind tables.
pub(crate) static WALK: Walk = Walk { here, at };

fn here(trace: &mut Trace) {
    let mut stack = room::<{ TRACE + MOST_OWN }>();
    let callers = Callers::new(&mut stack, TRACE);
    copy(walk_from(Registers::here(), callers).found(), trace);
}

fn at(registers: &signal::Registers, trace: &mut Trace) {
    // A call is looked for before its return address.
    let back = registers.instruction.wrapping_add(1);
    let first = Registers { back, stack: registers.stack, frame: registers.frame };
    let mut stack = room::<{ TRACE + MOST_OWN }>();
    copy(walk_from(first, Callers::new(&mut stack, TRACE)).found(), trace);
}

fn copy(found: &[usize], trace: &mut Trace) {
    trace.iter_mut().zip(found).for_each(|(place, address)| *place = *address);
}
