//! The text of the analyser.

use std::io::Write;

use super::analysis::{Analysis, Anomaly, Options};
use super::choice::kind;
use super::decoder::Event;
use super::ledger::Block;
use super::lines::{NO_THREAD, OLD, block, head};
use super::names::Names;
use super::recording::Recording;
use super::stop::Stop;

/// The columns of blocks.
const COLUMNS: &str = "# Address\tSize\tType\tAge\tAllocation thread\tAllocation time\t\
                       Allocation stack\tDeletion thread\tDeletion stack";
/// The thread and the stack of a deletion that has not been.
const NO_DELETION: &str = "notask\tnochain";

/// Writes what went wrong, then the live blocks and those that were deleted last.
///
/// # Errors
///
/// The file cannot be read, or the text cannot be written.
pub fn dump(names: &mut Names<'_>, options: &Options, out: &mut dyn Write) -> Result<(), Stop> {
    let recording = names.recording();
    let analysis = Analysis::new(names, options)?;
    let mut dump = Dump { recording, names, out };
    dump.numbers(&analysis)?;
    dump.messages()?;
    dump.anomalies(&analysis)?;
    dump.unlisted(&analysis)?;
    writeln!(dump.out, "\n{COLUMNS}")?;
    for block in &analysis.live {
        dump.block(block, None, analysis.end)?;
    }
    for (block, deletion) in &analysis.deleted {
        dump.block(block, Some(deletion), deletion.time)?;
    }
    Ok(())
}

struct Dump<'a, 'r> {
    recording: &'r Recording,
    names: &'a mut Names<'r>,
    out: &'a mut dyn Write,
}

impl Dump<'_, '_> {
    fn numbers(&mut self, analysis: &Analysis) -> Result<(), Stop> {
        let end = self.recording.microseconds(analysis.end);
        let Analysis { allocations, deletions, deleted_unseen, live, deleted, .. } = analysis;
        let bytes = live.iter().fold(0u64, |sum, block| sum.saturating_add(block.size));
        writeln!(self.out, "{}# end {end}", head(self.recording))?;
        writeln!(self.out, "# events {allocations} allocations, {deletions} deletions")?;
        let old = self.recording.old_blocks().len();
        writeln!(self.out, "# old blocks {old}, and {deleted_unseen} that were deleted unseen")?;
        let (live, deleted) = (live.len(), deleted.len());
        writeln!(self.out, "# shown {live} live blocks of {bytes} bytes, {deleted} deleted ones")?;
        Ok(())
    }

    fn messages(&mut self) -> Result<(), Stop> {
        for message in self.recording.messages() {
            write!(self.out, "\n{}", block(self.recording, message))?;
        }
        Ok(())
    }

    /// Why what was found may not have happened.
    fn doubt(&self) -> String {
        let doubt = |why| format!(", which may be due to the events that {why}");
        self.recording.lack().map(doubt).unwrap_or_default()
    }

    fn anomalies(&mut self, analysis: &Analysis) -> Result<(), Stop> {
        let count = analysis.anomalies.len() as u64 + analysis.more_anomalies;
        let doubt = if count > 0 { self.doubt() } else { String::new() };
        writeln!(self.out, "\nanomalies: {count}{doubt}")?;
        for anomaly in &analysis.anomalies {
            match anomaly {
                Anomaly::BadAddress(event) => {
                    writeln!(self.out, "bad address {:#x}: no block was there", event.address)?;
                    self.event("deleted", event)?;
                }
                Anomaly::InsideBlock(block, event) => {
                    let (address, around) = (event.address, block.address);
                    writeln!(self.out, "inner address {address:#x}: inside the block {around:#x}")?;
                    self.origin(Some(block))?;
                    self.event("deleted", event)?;
                }
                Anomaly::DoubleDeletion(block, first, second) => {
                    writeln!(self.out, "double deletion {:#x}", second.address)?;
                    self.origin(block.as_ref())?;
                    self.event("deleted", first)?;
                    self.event("deleted again", second)?;
                }
                Anomaly::LiveAddress(block, event) => {
                    let address = event.address;
                    writeln!(self.out, "live address {address:#x}: it was allocated twice")?;
                    self.origin(Some(block))?;
                    self.event("allocated again", event)?;
                }
            }
        }
        if analysis.more_anomalies > 0 {
            writeln!(self.out, "and {} more", analysis.more_anomalies)?;
        }
        Ok(())
    }

    fn unlisted(&mut self, analysis: &Analysis) -> Result<(), Stop> {
        let count = analysis.unlisted.len() as u64 + analysis.more_unlisted;
        if count > 0 {
            let why = "the list of old blocks lacks what is allocated while the recording begins";
            let doubt = self.doubt();
            writeln!(self.out, "\nperhaps old, and not listed: {count}{doubt}; {why}")?;
        }
        for event in &analysis.unlisted {
            writeln!(self.out, "not listed {:#x}: nothing before is about it", event.address)?;
            self.event("deleted", event)?;
        }
        if analysis.more_unlisted > 0 {
            writeln!(self.out, "and {} more", analysis.more_unlisted)?;
        }
        Ok(())
    }

    fn origin(&mut self, block: Option<&Block>) -> Result<(), Stop> {
        match block.map(Block::allocation) {
            Some(Some(event)) => self.event("allocated", event),
            _ => Ok(writeln!(self.out, "  allocated\t{NO_THREAD}\t{OLD}\t")?),
        }
    }

    fn event(&mut self, what: &str, event: &Event) -> Result<(), Stop> {
        let thread = self.recording.thread(event.thread);
        let time = self.recording.microseconds(event.time);
        let stack = self.names.stack(event.stack);
        Ok(writeln!(self.out, "  {what}\t{thread}\t{time}\t{stack}")?)
    }

    fn block(&mut self, block: &Block, deletion: Option<&Event>, end: u64) -> Result<(), Stop> {
        let kind = kind(block, deletion, self.names);
        write!(self.out, "{:#x}\t{}\t{kind}\t", block.address, block.size)?;
        match block.allocation() {
            None => write!(self.out, "{OLD}\t{NO_THREAD}\t{OLD}\t")?,
            Some(event) => {
                let age = block.age(end, self.recording) / 1000;
                let thread = self.recording.thread(event.thread);
                let time = self.recording.microseconds(event.time);
                let stack = self.names.stack(event.stack);
                write!(self.out, "{age}\t{thread}\t{time}\t{stack}")?;
            }
        }
        match deletion {
            None => writeln!(self.out, "\t{NO_DELETION}")?,
            Some(event) => {
                let thread = self.recording.thread(event.thread);
                writeln!(self.out, "\t{thread}\t{}", self.names.stack(event.stack))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter::{Filter, Range};
    use super::super::testing::{File, Happens};
    use super::*;
    use crate::symbols::Search;

    fn text(file: &File, options: &Options) -> String {
        let recording = Recording::of(file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let mut out = Vec::new();
        dump(&mut names, options, &mut out).expect("a dump");
        String::from_utf8(out).expect("text")
    }

    fn file() -> File {
        File::default()
            .stack(1, &[0x101])
            .stack(2, &[0x201, 0x301])
            .old(2000, &[[0x50, 64, 0]])
            .events(
                7,
                &[
                    (3000, Happens::New(0x10, 24), 1),
                    (4000, Happens::New(0x20, 32), 2),
                    (9000, Happens::Delete(0x10, 1), 2),
                    (9500, Happens::Delete(0x10, 1), 1),
                    (9600, Happens::Delete(0x70, 0), 1),
                    (9700, Happens::New(0x20, 40), 1),
                ],
            )
    }

    #[test]
    fn everything_is_shown() {
        let text_of = "invalid free of 0x70\nat \x1b";
        let file = file().message(9900, text_of).dropped(3, 9900).end(10_000, 3);
        let options = Options { filter: Filter::default(), deleted: 100 };
        let expected = "\
# lumalloc events 1
# process 22
# program /bin/x
# allocator lumalloc 0.1.0
# start 759537687000000
# dropped 3
# end 759537687000010
# events 3 allocations, 3 deletions
# old blocks 1, and 0 that were deleted unseen
# shown 2 live blocks of 104 bytes, 1 deleted ones

************************************************************************
* 759537687000009
* invalid free of 0x70
* at \u{fffd}
************************************************************************

anomalies: 3, which may be due to the events that were dropped
double deletion 0x10
  allocated\t22-7\t759537687000003\t0x100
  deleted\t22-7\t759537687000009\t0x200|0x300
  deleted again\t22-7\t759537687000009\t0x100
bad address 0x70: no block was there
  deleted\t22-7\t759537687000009\t0x100
live address 0x20: it was allocated twice
  allocated\t22-7\t759537687000004\t0x200|0x300
  allocated again\t22-7\t759537687000009\t0x100
";
        let blocks = "
0x50\t64\tnovtbl\told\t0-0\told\t\tnotask\tnochain
0x20\t40\tnotype\t0\t22-7\t759537687000009\t0x100\tnotask\tnochain
0x10\t24\tnotype\t6\t22-7\t759537687000003\t0x100\t22-7\t0x200|0x300
";
        assert_eq!(text(&file, &options), format!("{expected}\n{COLUMNS}{blocks}"));
    }

    #[test]
    fn blocks_that_the_list_lacks_are_no_anomalies() {
        let options = Options { filter: Filter::default(), deleted: 0 };
        let text = text(&file().end(20_000, 0), &options);
        let expected = "
perhaps old, and not listed: 1; the list of old blocks lacks what is allocated while the \
                        recording begins
not listed 0x70: nothing before is about it
  deleted\t22-7\t759537687000009\t0x100
";
        assert!(text.contains("anomalies: 2\n") && text.contains(expected), "{text}");
    }

    /// The last events of a thread are missing.
    #[test]
    fn anomalies_of_a_file_that_is_not_whole_are_doubtful() {
        let whole = file().end(20_000, 0);
        let damaged = whole.clone().chunk(b'E', &[5, 0, 1, 3]).end(20_000, 0);
        let ended = file().message(9900, "double free of 0x10");
        for (file, doubt) in [
            (&whole, ""),
            (&ended, ""),
            (&ended.clone().dropped(3, 9900), "were dropped"),
            (&file(), "are missing, because the file has no end"),
            (&damaged, "are missing, because the file is damaged"),
        ] {
            let text = text(file, &Options { filter: Filter::default(), deleted: 0 });
            let because = match doubt {
                "" => String::new(),
                doubt => format!(", which may be due to the events that {doubt}"),
            };
            assert!(text.contains(&format!("\nanomalies: 2{because}\n")), "{text}");
            let unlisted = format!("\nperhaps old, and not listed: 1{because}; ");
            assert!(text.contains(&unlisted), "{text}");
        }
        let nothing = File::default().old(2000, &[]);
        let text = text(&nothing, &Options { filter: Filter::default(), deleted: 0 });
        assert!(text.contains("\nanomalies: 0\n"), "{text}");
    }

    #[test]
    fn blocks_are_chosen() {
        let size = Range { min: 40, max: 50 };
        let filter = Filter { size, ..Filter::default() };
        let text = text(&file().end(20_000, 0), &Options { filter, deleted: 0 });
        let (_, blocks) = text.split_once(COLUMNS).expect("the columns");
        assert_eq!(
            blocks,
            "\n0x20\t40\tnotype\t10\t22-7\t759537687000009\t0x100\tnotask\tnochain\n"
        );
        assert!(text.contains("anomalies: 2\n"), "{text}");
    }
}
