//! Cuts a run in hand into parts, with spare records for them.

use super::in_hand::InHand;
use super::spares::Spares;
use crate::ground::units::LG_PAGE;

/// A run cut into three.
pub(super) struct Cut {
    pub(super) lead: Option<InHand>,
    pub(super) wanted: InHand,
    pub(super) behind: Option<InHand>,
}

/// Cuts a run after its first `pages` pages and returns the rest, or `None` if there is no rest or
/// no record for it.
pub(super) fn cut_off(spares: &mut Spares, run: &InHand, pages: usize) -> Option<InHand> {
    if run.pages() <= pages {
        return None;
    }
    let record = spares.take()?;
    Some(run.split_off(pages, record))
}

/// Cuts an aligned part out of a run. Returns all of the run if the part does not fit or there are
/// no records.
#[inline]
pub(super) fn cut_out(
    spares: &mut Spares,
    run: InHand,
    pages: usize,
    align: usize,
) -> Result<Cut, InHand> {
    let Some(begin) = run.fit(pages, align).filter(|_| spares.suffice_for_cut()) else {
        return Err(run);
    };
    let lead = (begin - run.base()) >> LG_PAGE;
    let (lead, wanted) = match if lead > 0 { cut_off(spares, &run, lead) } else { None } {
        Some(wanted) => (Some(run), wanted),
        None => (None, run),
    };
    let behind = cut_off(spares, &wanted, pages);
    Ok(Cut { lead, wanted, behind })
}
